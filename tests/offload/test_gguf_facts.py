"""Model files' headers: read as written by the format's own package, bounded and boxed for anything else."""

import io
import struct
import sys

import gguf
import pytest
from embedded_model import model_path
from gguf_files import make_adapter, make_gguf
from hypothesis import given
from hypothesis import strategies as st

from offload import model_facts as model_facts_module
from offload.errors import ModelUnusable
from offload.gguf import quantisation_name, read_facts
from offload.model_facts import model_facts


def facts_of(data):
    return read_facts(io.BytesIO(data), len(data))


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return make_gguf(tmp_path_factory.mktemp("gguf") / "a.gguf", template="{{ tools }} {{ messages }}").read_bytes()


def test_the_facts_of_a_file(sample):
    facts = facts_of(sample)
    assert (facts.architecture, facts.name, facts.licence) == ("llama", "Tiny Test", "apache-2.0")
    assert (facts.quantisation, facts.context_tokens, facts.layers, facts.embedding_width) == ("Q4_0", 2048, 3, 64)
    assert (facts.vocabulary, facts.tensors, facts.parameters, facts.version) == (40, 2, 36, 3)
    assert facts.has_template and facts.template_knows_tools and not facts.adapter


def test_what_a_file_does_not_say_is_empty(tmp_path):
    facts = facts_of(make_gguf(tmp_path / "b.gguf", file_type=None).read_bytes())
    assert (facts.quantisation, facts.has_template, facts.template_knows_tools) == ("", False, False)


def test_file_types_are_called_as_in_llama_cpp():
    names = {one.value: one.name.removeprefix("MOSTLY_").removeprefix("ALL_") for one in gguf.LlamaFileType}
    ours = {number: quantisation_name(number) for number in range(64) if quantisation_name(number)}
    assert ours == {number: names[number] for number in ours}


def test_every_cut_is_refused_with_words(sample):
    end = sample.index(b"output_norm.weight") + len(b"output_norm.weight") + 4 + 8 + 4 + 8
    for at in range(end):
        with pytest.raises(ModelUnusable):
            facts_of(sample[:at])


@given(st.binary(max_size=400))
def test_any_bytes_end_in_facts_or_one_error(data):
    for start in (b"", b"GGUF\x03\x00\x00\x00"):
        with pytest.raises(ModelUnusable):
            facts_of(start + data)


@given(st.integers(0, 900), st.integers(0, 255))
def test_one_wrong_byte_never_breaks_the_reader(sample, at, value):
    data = bytearray(sample)
    data[at % len(data)] = value
    try:
        facts = facts_of(bytes(data))
    except ModelUnusable:
        return
    assert facts.architecture.isprintable() and len(facts.name) <= 200


def header(pairs, tensors=0, version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


def key(name):
    return struct.pack("<Q", len(name)) + name


@pytest.mark.parametrize("data", [
    header(2**63), header(0, 2**63), header(0, version=1), header(0), b"GGML" + bytes(40),
    header(1) + struct.pack("<Q", 2**62),                                                       # a key without end
    header(1) + key(b"a") + struct.pack("<IQ", 8, 2**62),                                       # a text without end
    header(1) + key(b"a") + struct.pack("<IIQ", 9, 0, 2**62),                                   # a list without end
    header(1) + key(b"a") + struct.pack("<IIQ", 9, 8, 3_000_000),                               # of texts, cut off
    header(1) + key(b"a") + struct.pack("<IIQ", 9, 9, 1),                                       # lists in lists
    header(1) + key(b"a") + struct.pack("<I", 99),
])
def test_what_would_exhaust_memory_or_time_is_refused(data):
    with pytest.raises(ModelUnusable):
        facts_of(data)


def test_control_characters_do_not_reach_the_owner(tmp_path):
    facts = facts_of(make_gguf(tmp_path / "c.gguf", name="evil\x1b[2Jname\n", licence="x" * 900).read_bytes())
    assert facts.name == "evil [2Jname" and len(facts.licence) == 200


@pytest.mark.model
async def test_the_embedded_model_through_the_box():
    facts = await model_facts(model_path())
    assert (facts.architecture, facts.quantisation, facts.context_tokens) == ("llama", "Q4_0", 8192)
    assert facts.has_template and facts.parameters == 134_515_008 and facts.vocabulary == 49152


async def test_a_box_says_what_is_wrong(tmp_path):
    wrong = tmp_path / "notes.gguf"
    wrong.write_text("hello")
    with pytest.raises(ModelUnusable, match="no GGUF"):
        await model_facts(wrong)
    with pytest.raises(ModelUnusable, match="No such file"):
        await model_facts(tmp_path / "absent.gguf")


async def test_a_reader_that_dies_or_lies_is_an_error(tmp_path, monkeypatch):
    for code in ("import os; os.kill(os.getpid(), 11)",
                 "import sys, os; fd = int(sys.argv[2]); os.write(fd, bytes([1, 0, 0, 0, 0xc1]))"):
        start = model_facts_module.start_child
        monkeypatch.setattr(
            model_facts_module, "start_child",
            lambda module, *arguments, code=code, start=start: start(
                module, *arguments, command=[sys.executable, "-c", code]))
        with pytest.raises(ModelUnusable, match=r"ended|nonsense"):
            await model_facts(tmp_path / "x.gguf")
        monkeypatch.undo()


def test_an_adapter_says_what_it_is_for(tmp_path):
    path = make_adapter(tmp_path / "a.gguf", width=64, layers=3, base_name="Tiny Test")
    with path.open("rb") as file:
        facts = read_facts(file, path.stat().st_size)
    assert (facts.adapter, facts.adapter_base, facts.embedding_width, facts.layers) == ("lora", "Tiny Test", 64, 3)
