"""A real model file that writes what a test says: a GPT-2 whose next token depends on nothing but its place.

Each place of the script has a direction of its own in the position embedding, and the output matrix maps it to the
token that is to follow; all else is zero. So llama.cpp, the worker and everything above run for real, and the words are
the test's. Its tokens are single bytes, and control tokens for the markers of chats and calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from gguf import GGUFWriter

from offload.engine.chat import PromptReader
from offload.engine.formats.tools import read_tools
from offload.engine.library import Model
from offload.ports import ChatPrompt, GenerateRequest

__all__ = ["CHATML", "CONTROLS", "END", "tokens_of", "write_scripted", "write_scripts"]

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROLS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END = "<|im_end|>"
_WIDTH, _CONTEXT, _HEADS, _FORWARD = 1024, 4096, 4, 32
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4     # LLAMA_TOKEN_TYPE_*


def tokens_of(text: str, specials: Sequence[str] = CONTROLS) -> list[int]:
    """The text as this vocabulary writes it: specials as one token, everything else byte by byte."""
    found: list[int] = []
    while text:
        at = next((place for place, one in enumerate(specials) if text.startswith(one)), None)
        if at is None:
            found += text[0].encode()
            text = text[1:]
        else:
            found.append(256 + at)
            text = text[len(specials[at]):]
    return found


def write_scripted(
    target: Path, request: GenerateRequest, script: str, *, template: str = CHATML, more_controls: Sequence[str] = (),
    plain: Sequence[str] = (),
) -> list[int]:
    """Write a model that answers this request with this script, up to 1,024 tokens; returns them.

    more_controls, plain: further tokens for these texts, control ones and normal ones.
    """
    write_scripts(target, [(request, script)], template=template, more_controls=more_controls, plain=plain)
    return tokens_of(script, (*CONTROLS, *more_controls, *plain))


def write_scripts(
    target: Path, pairs: Sequence[tuple[GenerateRequest, str]], *, template: str = CHATML,
    more_controls: Sequence[str] = (), plain: Sequence[str] = (),
) -> list[GenerateRequest]:
    """The same for several requests, which are told apart by the lengths of their prompts: their first messages get
    longer as necessary, and come back so."""
    specials = (*CONTROLS, *more_controls, *plain)
    types = [_NORMAL] * 256 + [_CONTROL] * (3 + len(more_controls)) + [_USER_DEFINED] * len(plain)
    _write(target, template, specials, types, {})
    model = Model(str(target), extra_buffers=False)
    places: dict[int, int] = {}
    requests = []
    free = 0
    try:
        for request, script in pairs:
            begins = _prompt_tokens(model, request) - 1
            if begins < free:
                request = _longer(request, free - begins)
                begins = free
            places |= {begins + step: token for step, token in enumerate(tokens_of(script, specials))}
            free = max(places) + 2
            requests.append(request)
    finally:
        model.close()
    _write(target, template, specials, types, places)
    return requests


def _longer(request: GenerateRequest, by: int) -> GenerateRequest:
    assert isinstance(request.prompt, ChatPrompt)
    first, *others = request.prompt.messages
    first = msgspec.structs.replace(first, content=first.content + "." * by)
    return msgspec.structs.replace(request, prompt=ChatPrompt((first, *others)))


def _prompt_tokens(model: Model, request: GenerateRequest) -> int:
    reader = PromptReader(model)
    if not isinstance(request.prompt, ChatPrompt):
        return len(reader.ids(request.prompt))
    tools = () if request.tool_choice == "none" else read_tools([
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in request.tools if request.named_tool in (None, tool.name)])
    return len(reader.read(request.prompt.messages, tools, thinking=request.thinking_tokens > 0).ids)


def _write(
    target: Path, template: str, specials: Sequence[str], types: Sequence[int], places: Mapping[int, int],
) -> None:
    """places: position of a token -> the token that follows it."""
    assert len(places) <= _WIDTH
    words = 256 + len(specials)
    draft = target.with_suffix(".part")
    writer = GGUFWriter(draft, "gpt2")
    for name, value in {
        "block_count": 1, "context_length": _CONTEXT, "embedding_length": _WIDTH, "feed_forward_length": _FORWARD,
        "head_count": _HEADS, "layer_norm_eps": 1e-5, "vocab_size": words, "tokenizer_model": "gpt2",
        "tokenizer_pre": "gpt-2", "eos_token_id": 258, "bos_token_id": 256, "add_bos_token": False,
        "chat_template": template,
    }.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_token_list([*map(_printed, range(256)), *specials])
    writer.add_token_types(list(types))
    writer.add_token_merges(["\u0100 \u0101"])      # there must be one; it applies to nothing that is written here
    directions = np.zeros((_CONTEXT, _WIDTH), dtype=np.float16)
    output = np.zeros((words, _WIDTH), dtype=np.float16)
    for step, (place, token) in enumerate(places.items()):
        directions[place, step] = 1.0
        output[token, step] = 1.0

    def put(name: str, *shape: int, value: float = 0.0) -> None:
        writer.add_tensor(name, np.full(shape, value, dtype=np.float16 if len(shape) > 1 else np.float32))

    put("token_embd.weight", words, _WIDTH)
    writer.add_tensor("position_embd.weight", directions)
    writer.add_tensor("output.weight", output)
    for name, shape in {
        "attn_qkv": (3 * _WIDTH, _WIDTH), "attn_output": (_WIDTH, _WIDTH), "ffn_up": (_FORWARD, _WIDTH),
        "ffn_down": (_WIDTH, _FORWARD),
    }.items():
        put(f"blk.0.{name}.weight", *shape)
        put(f"blk.0.{name}.bias", shape[0])
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        put(f"{name}.weight", _WIDTH, value=1.0)
        put(f"{name}.bias", _WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    draft.rename(target)


def _printed(byte: int) -> str:
    """How GPT-2's vocabulary writes a byte: itself where that is visible, else a letter from U+0100 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    if byte in visible:
        return chr(byte)
    return chr(0x100 + [one for one in range(256) if one not in visible].index(byte))
