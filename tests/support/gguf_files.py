"""Small GGUF files for tests, written by the format's own Python package, not by ours."""

from pathlib import Path

import gguf
import numpy as np

__all__ = ["make_gguf"]


def make_gguf(path: Path, *, file_type: int | None = 2, template: str | None = None, vocabulary: int = 40,
              licence: str = "apache-2.0", context_tokens: int = 2048, name: str = "Tiny Test",
              ballast_bytes: int = 0) -> Path:
    """A file with metadata and two tensors (8 x 4 and 4 weights), no usable model. ballast_bytes: one more tensor."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_license(licence)
    writer.add_context_length(context_tokens)
    writer.add_block_count(3)
    writer.add_embedding_length(64)
    if file_type is not None:
        writer.add_file_type(file_type)
    writer.add_token_list([f"piece {number} é" for number in range(vocabulary)])
    writer.add_token_scores([0.5] * vocabulary)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    if template is not None:
        writer.add_chat_template(template)
    writer.add_tensor("token_embd.weight", np.ones((8, 4), dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(4, dtype=np.float32))
    if ballast_bytes:
        noise = np.random.default_rng(1).integers(0, 256, ballast_bytes, dtype=np.uint8)
        writer.add_tensor("ballast.weight", noise.view(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
