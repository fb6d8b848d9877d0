"""Small GGUF files for tests, written by the format's own Python package, not by ours."""

from pathlib import Path

import gguf
import numpy as np

__all__ = ["make_adapter", "make_gguf"]


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


def make_adapter(path: Path, *, seed: int = 1, width: int = 576, layers: int = 30, strength: float = 0.1,
                 architecture: str = "llama", base_name: str = "") -> Path:
    """A LoRA adapter of rank 4 with random weights for the queries of each layer; by default for SmolLM2-135M."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    if base_name:
        writer.add_string("general.base_model.0.name", base_name)
    drawn = np.random.default_rng(seed)
    for layer in range(layers):
        for end, shape in (("a", (4, width)), ("b", (width, 4))):
            weights = (drawn.standard_normal(shape) * strength).astype(np.float32)
            writer.add_tensor(f"blk.{layer}.attn_q.weight.lora_{end}", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
