"""The format is told from the chat template: hand-written excerpts with the marks, and published templates."""

import pytest
from chat_templates import chat_templates

from offload.engine.formats.detection import FORMATS, format_of

EXCERPTS = [
    ("lfm2", 'List of tools: <|tool_list_start|>[{{ tools }}]<|tool_list_end|>'),
    ("lfm2", '{%- set prompt = "List of tools: [" -%}'),
    ("minicpm5", 'Tool usage guidelines:\n<function name="f"><param name="p">v</param></function>'),
    ("qwen-xml", "<tool_call>\n<function=f>\n<parameter=p>\nv\n</parameter>\n</function>\n</tool_call>"),
    ("hermes-json", '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'),
    ("llama-3", '<|start_header_id|>system<|end_header_id|> {"name": function name, "parameters": dictionary}'),
    ("llama-3", "<|start_header_id|>{{ role }}<|end_header_id|><|python_tag|>"),
    ("gemma", "<start_of_turn>user\n{{ content }}<end_of_turn>"),
    ("generic", "<|im_start|>{{ role }}\n{{ content }}<|im_end|>"),
    ("generic", "<tool_call>{function-name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"),
    ("generic", "<|start_header_id|>{{ role }}<|end_header_id|>"),
    ("generic", "<|start_header_id|><|python_tag|><function=f>"),
    ("generic", ""),
]
PUBLISHED = {
    "Qwen3.5-4B": "qwen-xml", "Qwen3-Coder": "qwen-xml", "StepFun3.5-Flash": "qwen-xml",
    "Qwen-Qwen3-0.6B": "hermes-json", "Qwen-Qwen2.5-7B-Instruct": "hermes-json",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes-json", "ibm-granite-granite-4.0": "hermes-json",
    "LFM2-8B-A1B": "lfm2", "LFM2.5-8B-A1B": "lfm2", "LFM2.5-Instruct": "lfm2", "openbmb-MiniCPM5-1B": "minicpm5",
    "meta-llama-Llama-3.1-8B-Instruct": "llama-3", "meta-llama-Llama-3.2-3B-Instruct": "llama-3",
    "google-gemma-2-2b-it": "gemma", "HuggingFaceTB-SmolLM3-3B": "generic", "google-gemma-4-31B-it": "generic",
    "GLM-4.6": "generic", "MiniMax-M3": "generic", "microsoft-Phi-3.5-mini-instruct": "generic",
    "meetkai-functionary-medium-v3.1": "generic", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "generic",
}


@pytest.mark.parametrize(("name", "template"), EXCERPTS)
def test_a_template_shows_its_format(name: str, template: str) -> None:
    assert format_of(template).name == name


def test_without_a_template_the_format_is_the_generic_one() -> None:
    assert format_of(None).name == "generic"


def test_every_format_is_found_by_some_excerpt_and_names_are_unique() -> None:
    assert {name for name, _ in EXCERPTS} == {one.name for one in FORMATS}
    assert len({one.name for one in FORMATS}) == len(FORMATS)


def test_published_templates_are_told_apart() -> None:
    templates = chat_templates()
    found = {name: format_of(templates[name]).name for name in PUBLISHED if name in templates}
    assert found == {name: wanted for name, wanted in PUBLISHED.items() if name in templates}
    assert len(found) >= 15
