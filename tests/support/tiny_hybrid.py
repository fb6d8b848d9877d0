"""A tiny model of random weights with Qwen3.5's hybrid memory, made from the embedded model's vocabulary.

It writes nonsense; what is tested with it is what its memory can and can't do. Layers and names as in llama.cpp's
qwen35: three of four are gated delta nets with a state per sequence, every fourth is attention.
"""

from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFWriter

__all__ = ["TEMPLATE", "make_hybrid"]

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
)
_LAYERS, _WIDTH, _HEADS, _KV_HEADS, _HEAD_WIDTH, _FORWARD = 4, 64, 4, 2, 32, 128
_STATE, _GROUPS, _RANK, _KERNEL = 16, 2, 4, 4


def make_hybrid(vocabulary_from: Path, target: Path, template: str = TEMPLATE) -> Path:
    """Write the model file, some 15 MB; the same each time."""
    fields = GGUFReader(vocabulary_from).fields
    tokens, types, merges = (fields[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type", "merges"))
    draft = target.with_suffix(".part")
    writer = GGUFWriter(draft, "qwen35")
    for name, value in {
        "block_count": _LAYERS, "context_length": 4096, "embedding_length": _WIDTH, "feed_forward_length": _FORWARD,
        "head_count": _HEADS, "head_count_kv": _KV_HEADS, "key_length": _HEAD_WIDTH, "value_length": _HEAD_WIDTH,
        "layer_norm_rms_eps": 1e-6, "rope_freq_base": 1e7, "rope_dimension_count": _HEAD_WIDTH // 2,
        "rope_dimension_sections": [4, 2, 2, 0], "ssm_conv_kernel": _KERNEL, "ssm_inner_size": _STATE * _RANK,
        "ssm_state_size": _STATE, "ssm_time_step_rank": _RANK, "ssm_group_count": _GROUPS,
        "vocab_size": len(tokens.data), "tokenizer_model": "gpt2", "tokenizer_pre": "smollm", "eos_token_id": 2,
        "bos_token_id": 1, "chat_template": template,
    }.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_uint32("qwen35.full_attention_interval", _LAYERS)
    writer.add_token_list([bytes(tokens.parts[index]) for index in tokens.data])
    writer.add_token_types([int(types.parts[index][0]) for index in types.data])
    writer.add_token_merges([bytes(merges.parts[index]).decode() for index in merges.data])
    _add_tensors(writer, len(tokens.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return draft.rename(target)


def _add_tensors(writer: GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(1)

    def noise(name: str, *shape: int) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.1).astype(np.float32))

    def ones(name: str, size: int) -> None:
        writer.add_tensor(name, np.ones(size, np.float32))

    key, value = _STATE * _GROUPS, _STATE * _RANK
    noise("token_embd.weight", vocabulary, _WIDTH)
    ones("output_norm.weight", _WIDTH)
    for layer in range(_LAYERS):
        at = f"blk.{layer}."
        ones(at + "attn_norm.weight", _WIDTH)
        ones(at + "post_attention_norm.weight", _WIDTH)
        if (layer + 1) % _LAYERS == 0:
            noise(at + "attn_q.weight", _HEAD_WIDTH * _HEADS * 2, _WIDTH)
            noise(at + "attn_k.weight", _HEAD_WIDTH * _KV_HEADS, _WIDTH)
            noise(at + "attn_v.weight", _HEAD_WIDTH * _KV_HEADS, _WIDTH)
            noise(at + "attn_output.weight", _WIDTH, _HEAD_WIDTH * _HEADS)
            ones(at + "attn_q_norm.weight", _HEAD_WIDTH)
            ones(at + "attn_k_norm.weight", _HEAD_WIDTH)
        else:
            noise(at + "attn_qkv.weight", key * 2 + value, _WIDTH)
            noise(at + "attn_gate.weight", value, _WIDTH)
            noise(at + "ssm_conv1d.weight", key * 2 + value, _KERNEL)
            noise(at + "ssm_dt.bias", _RANK)
            writer.add_tensor(at + "ssm_a", -np.abs(random.standard_normal(_RANK)).astype(np.float32))
            noise(at + "ssm_beta.weight", _RANK, _WIDTH)
            noise(at + "ssm_alpha.weight", _RANK, _WIDTH)
            ones(at + "ssm_norm.weight", _STATE)
            noise(at + "ssm_out.weight", _WIDTH, value)
        noise(at + "ffn_gate.weight", _FORWARD, _WIDTH)
        noise(at + "ffn_down.weight", _WIDTH, _FORWARD)
        noise(at + "ffn_up.weight", _FORWARD, _WIDTH)
