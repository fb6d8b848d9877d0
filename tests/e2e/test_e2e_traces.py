"""At the most talkative log level, a node at work leaves nothing personal in logs, arguments or files out of home."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from canary import Canary
from embedded_model import models_folder
from running_nodes import Household, cli, household

from node.cli.demo.nodes import DemoNode

pytestmark = [pytest.mark.e2e, pytest.mark.model]

PLANTED = ["Quillon Hasselbring", "quillon.hasselbring@meadowmail.test"]
MESSAGE = "Ostrich Fandango"


@pytest.fixture(scope="module")
def house() -> Iterator[Household]:
    models_folder()
    with household(started=False) as running:
        card = (f"BEGIN:VCARD\nVERSION:3.0\nUID:q\nFN:{PLANTED[0]}\nN:Hasselbring;Quillon;;;\n"
                f"EMAIL:{PLANTED[1]}\nEND:VCARD\n")
        (running.phone.home / "contacts" / "quillon.vcf").write_text(card)
        for node in running.nodes:
            assert cli(node, "config", "set", "log.level", "debug").returncode == 0
        running.start()
        running.pair()
        yield running


def processes(node: DemoNode) -> list[psutil.Process]:
    return [psutil.Process(node.pid), *psutil.Process(node.pid).children(recursive=True)]


def files_out_of_home(node: DemoNode) -> list[str]:
    """Regular files that the node's processes hold open for writing, other than below its own home."""
    found = []
    for process in processes(node):
        for one in process.open_files():
            outside = not one.path.startswith((str(node.home), "/memfd:", "/dev/"))
            if outside and ("w" in one.mode or "a" in one.mode or "+" in one.mode):
                found.append(one.path)
    return found


def test_no_trace_of_what_was_asked_and_said(house: Household) -> None:
    phone, home_pc = house.nodes
    owner = house.owner
    owner.ask(f"Write one friendly sentence to {PLANTED[0]} ({PLANTED[1]})", on=home_pc.name)
    owner.ask("what is the e-mail address of Quillon Hasselbring?")
    phone.client().post("/v1/messages", {"to": home_pc.name, "body": MESSAGE})
    assert cli(phone, "ledger", "show", "999").returncode != 0      # an error has its lines, too

    canary = Canary([*PLANTED, MESSAGE])
    for node in house.nodes:
        log = node.home / "state" / "kith.log"
        text = log.read_bytes()
        assert b'"debug"' in text, "the log was not at its most talkative"
        assert canary.scan([text, (node.home / "output.log").read_bytes()]) == []
        arguments = [Path(f"/proc/{process.pid}/cmdline").read_bytes() for process in processes(node)]
        assert len(arguments) >= 2
        assert canary.scan(arguments) == []
        environments = [Path(f"/proc/{process.pid}/environ").read_bytes() for process in processes(node)]
        assert canary.scan(environments) == []
        assert files_out_of_home(node) == []
    # the negative controls: the same scan finds them where they are meant to be, and a careless line would be found
    assert canary.scan([(phone.home / "contacts" / "quillon.vcf").read_bytes()])
    assert canary.scan([f"debug: sending to {PLANTED[0]}".encode()])
    with open(house.world.root / "stray", "w") as stray:
        assert stray.name in [one.path for one in psutil.Process(os.getpid()).open_files()]
