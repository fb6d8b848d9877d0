"""The log: JSON lines in a private rotating file, no personal text whatever is logged, levels by whose line it is."""

import io
import json
import logging
import stat

import pytest

from node import log
from node.errors import StorageError

MAIL = "bea.quill@example.org"
PHONE = "+49 170 1234567"


@pytest.fixture(autouse=True)
def _leave_logging_as_it_was():
    root = logging.getLogger()
    before, level, raises = list(root.handlers), root.level, logging.raiseExceptions
    yield
    for handler in list(root.handlers):
        if handler not in before:
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)
    logging.raiseExceptions = raises
    for name in log.OWN_LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def start(tmp_path, **changes):
    console = io.StringIO()
    settings = {"level": "info", "max_mb": 1, "keep_files": 2, "console": console, **changes}
    return tmp_path / "kith.log", console, log.set_up(tmp_path / "kith.log", **settings)


def test_a_line_is_json_in_the_file_and_plain_on_the_terminal(tmp_path):
    path, console, _ = start(tmp_path)
    logging.getLogger("node.daemon").info("listening on port %d", 4001)
    logging.getLogger("node.daemon").warning("no model")
    assert [(one["level"], one["logger"], one["text"]) for one in lines(path)] == [
        ("info", "node.daemon", "listening on port 4001"), ("warning", "node.daemon", "no model"),
    ]
    assert lines(path)[0]["at"].endswith("+00:00")
    assert [line[9:] for line in console.getvalue().splitlines()] == ["listening on port 4001", "warning: no model"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def log_everything_personal(logger):
    logger.info("mail from %s", MAIL)
    logger.info("call %s", PHONE)
    logger.info("said %s", "a long private sentence " * 10)
    logger.info("got %s", MAIL.encode())
    logger.info("said %(text)s", {"text": "a long private sentence " * 10})
    logger.info("failed: %s", ValueError(f"could not read {MAIL}"))
    try:
        raise ValueError(f"a long private sentence to {MAIL}")
    except ValueError:
        logger.exception("a tool failed")


def personal(text):
    return [one for one in (MAIL, "1234567", "private sentence") if one in text]


def test_personal_values_do_not_reach_file_or_terminal(tmp_path):
    path, console, _ = start(tmp_path)
    log_everything_personal(logging.getLogger("node.agent"))
    assert personal(path.read_text() + console.getvalue()) == []
    texts = [one["text"] for one in lines(path)]
    assert texts[:4] == ["mail from <address>", "call <number>", "said <240 characters>", "got <21 bytes>"]
    assert texts[5] == "failed: ValueError"
    assert lines(path)[6]["error"].startswith("ValueError at test_log.py:")


def test_control_without_the_filter_all_of_it_is_written(tmp_path):
    path, console, redact = start(tmp_path)
    for handler in logging.getLogger().handlers:
        handler.removeFilter(redact)
    log_everything_personal(logging.getLogger("node.agent"))
    assert len(personal(console.getvalue() + path.read_text())) == 3


def test_one_more_net_can_be_added_and_a_broken_line_stops_nobody(tmp_path):
    path, _, redact = start(tmp_path)
    redact.scrub = lambda text: text.replace("Quillfeather", "<name>")
    logging.getLogger("node").info("hello Quillfeather")
    logging.getLogger("node").info("two %s %s", "one")

    def broken(text):
        raise ZeroDivisionError

    redact.scrub = broken
    logging.getLogger("node").info("secret")
    assert [one["text"] for one in lines(path)] == [
        "hello <name>", "(a log line was left out: TypeError)", "(a log line was left out: ZeroDivisionError)",
    ]


def test_our_own_errors_keep_their_text_which_was_written_for_reading(tmp_path):
    path, _, _ = start(tmp_path)
    try:
        raise StorageError("The disk is full.")
    except StorageError as error:
        logging.getLogger("node").exception("stopping: %s", error)
    assert lines(path)[0]["text"] == "stopping: The disk is full."
    assert lines(path)[0]["error"].startswith("StorageError: The disk is full. at ")


def test_other_libraries_log_warnings_only(tmp_path):
    path, _, _ = start(tmp_path, level="debug")
    logging.getLogger("elsewhere.host").info("dialling")
    logging.getLogger("elsewhere.host").warning("reset")
    logging.getLogger("offload.router").debug("chose here")
    assert [one["text"] for one in lines(path)] == ["reset", "chose here"]


def test_the_file_rotates_and_old_ones_are_few_and_private(tmp_path):
    start(tmp_path, console=None)
    for handler in logging.getLogger().handlers:
        if getattr(handler, "made_here", False):
            handler.maxBytes = 2000
    for number in range(100):
        logging.getLogger("node").info("line %d", number)
    files = sorted(one.name for one in tmp_path.iterdir())
    assert files == ["kith.log", "kith.log.1", "kith.log.2"]
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}


def test_setting_up_again_replaces_the_handlers(tmp_path):
    start(tmp_path)
    path, _, _ = start(tmp_path)
    logging.getLogger("node").info("once")
    assert len(lines(path)) == 1
