"""Where a model is computed: with a build for the CPU only, with a card, and when the card refuses."""

from pathlib import Path

import pytest
from embedded_model import models_folder
from engine_asks import asked, collect, running_engine
from gguf_files import make_gguf

from offload.engine import devices, placement
from offload.engine.devices import can_offload, device_nodes, find_devices
from offload.engine.library import open_library
from offload.engine.placement import Placement, choose_gpu, open_model
from offload.errors import ModelUnusable
from offload.gpu_layers import Device
from offload.ports import Finished
from offload.worker_frames import Serve

CARD = Device("CUDA0", "Some card", 6 * 10**9, 8 * 10**9)


def setup(path: Path, gpu_layers: int = -1) -> Serve:
    return Serve(model_path=str(path), digest="d", context_tokens=512, slots=1, queue_limit=1, threads=1,
                 extra_buffers=False, gpu_layers=gpu_layers)


def test_the_tested_build_computes_on_the_cpu(tmp_path: Path) -> None:
    open_library()
    assert not can_offload() and find_devices() == ()
    placed = choose_gpu(setup(tmp_path / "m.gguf"), 1)
    assert placed == Placement(words="none: this build of llama.cpp computes on the CPU only")
    assert choose_gpu(setup(tmp_path / "m.gguf", 0), 1).words == "switched off"


def test_the_librarys_registry_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """No card here, so the processor, which stands in the same registry, takes its place."""
    open_library()
    monkeypatch.setattr(devices, "can_offload", lambda: True)
    assert find_devices() == ()
    monkeypatch.setattr(devices, "_CARDS", frozenset({0}))
    (found,) = find_devices()
    assert found.name == "CPU" and found.description
    assert 0 < found.free_bytes <= found.total_bytes
    assert all(Path(node).exists() for node in device_nodes())


def test_with_a_card_its_layers_are_chosen_and_the_box_says_what_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = make_gguf(tmp_path / "m.gguf")       # 3 layers
    monkeypatch.setattr(placement, "find_devices", lambda: (CARD,))
    monkeypatch.setattr(placement, "device_nodes", lambda: ("/dev/null",))
    placed = choose_gpu(setup(file), file.stat().st_size)
    assert (placed.layers, placed.nodes) == (4, ("/dev/null",))
    assert placed.words == "3 of 3 layers on Some card (6.0 of 8.0 GB free)"
    assert "held" not in placed.gap.values() and placed.gap
    assert choose_gpu(setup(file, 2), file.stat().st_size).words.startswith("2 of 3 layers")
    full = Device("CUDA0", "Full card", 100, 8 * 10**9)
    monkeypatch.setattr(placement, "find_devices", lambda: (full,))
    placed = choose_gpu(setup(file), file.stat().st_size)
    assert (placed.layers, placed.nodes, placed.gap) == (0, (), {})
    (tmp_path / "bad.gguf").write_bytes(b"x")
    monkeypatch.setattr(placement, "find_devices", lambda: (CARD,))
    assert choose_gpu(setup(tmp_path / "bad.gguf"), 1).layers == 0


def test_a_card_that_refuses_leaves_the_model_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    class Refused:
        def __init__(self, path: str, *, extra_buffers: bool, gpu_layers: int = 0) -> None:
            opened.append(gpu_layers)
            if gpu_layers:
                raise ModelUnusable

    monkeypatch.setattr(placement, "Model", Refused)
    _, placed = open_model(setup(Path("m.gguf")), Placement(7, "7 of 7 layers", ("/dev/null",)))
    assert opened == [7, 0] and placed.layers == 0 and placed.words == "none: the card refused the model"


@pytest.mark.model
async def test_health_tells_where_it_computes() -> None:
    async with running_engine([models_folder()]) as engine:
        assert isinstance((await collect(engine, asked("Hi", max_tokens=2)))[-1], Finished)
        assert (await engine.health()).gpu == "none: this build of llama.cpp computes on the CPU only"
