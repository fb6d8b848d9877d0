"""The walls around a child process, raised by the child itself: what it can reach and use up, when it must die.

Each layer is best effort and independent; the report says for each one "held" or why it is missing, so that a machine
without one of them is seen and not silently weaker. Linux only. Must not know what the child does.

Order matters: tie_to_parent and limit first; import everything that starts no thread; then enter, while the process
still has one thread (a user namespace refuses a process with more, and Landlock binds only the calling thread and what
it starts later). Sources: landlock(7), seccomp(2), user_namespaces(7), prctl(2), linux/landlock.h.
"""

import ctypes
import os
import platform
import resource
import signal
import sysconfig
from collections.abc import Sequence

from offload.child.syscalls import deny_syscalls

__all__ = ["HELD", "enter_box", "limit_memory", "limit_resources", "private_bytes", "runtime_paths", "tie_to_parent"]

HELD = "held"

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446     # the same on every architecture
_LANDLOCK_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_FS_EXECUTE, _FS_WRITE_FILE, _FS_READ_FILE, _FS_READ_DIR = 1, 2, 4, 8
_FS_FIRST_VERSION = (1 << 13) - 1
_FS_REFER, _FS_TRUNCATE, _FS_IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FILE_RIGHTS = _FS_EXECUTE | _FS_WRITE_FILE | _FS_READ_FILE | _FS_TRUNCATE
_NET_BIND_AND_CONNECT = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_OPEN_FILES = 64

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def runtime_paths() -> tuple[str, ...]:
    """Folders of the interpreter and the installed packages: code, which some modules load late, and nobody's data."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(dict.fromkeys(sysconfig.get_path(name) for name in names))


def tie_to_parent(parent_pid: int) -> str:
    """Have the kernel kill this process with its parent. Exits at once when that parent is already gone."""
    try:
        _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    except OSError as error:
        return f"missing: {error.strerror}"
    if os.getppid() != parent_pid:
        os._exit(0)
    return HELD


def limit_resources(open_files: int = _OPEN_FILES) -> str:
    """No core files (they would hold prompts) and few open files."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    except (OSError, ValueError) as error:
        return f"missing: {error}"
    return HELD


def limit_memory(data_bytes: int) -> str:
    """Stop a runaway: at most data_bytes of private memory. Mapped model files do not count (RLIMIT_DATA)."""
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))
    except (OSError, ValueError) as error:
        return f"missing: {error}"
    return HELD


def private_bytes() -> int:
    """What counts against limit_memory at this moment (VmData of proc(5)); 0 where the kernel does not say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:")), 0)
    except OSError:
        return 0


def enter_box(*, read: Sequence[str] = (), write: Sequence[str] = ()) -> dict[str, str]:
    """Shut the box; afterwards only the paths below `read` and `write` open, and there is no network and no exec.

    Returns the layers {name: "held" or the reason why it is missing}. Paths that don't exist are skipped.
    """
    layers: dict[str, str] = {}
    for name, raise_wall in (
        ("no_new_privs", _forbid_new_privileges),
        ("network_namespace", _leave_network),
        ("landlock", lambda: _restrict_files(read, write)),
        ("seccomp", deny_syscalls),
    ):
        try:
            raise_wall()
        except OSError as error:
            layers[name] = f"missing: {error.strerror or error}"
        else:
            layers[name] = HELD
    return layers


def _forbid_new_privileges() -> None:
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def _leave_network() -> None:
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET), "unshare")
    # Without a mapping this process would own nothing, its own cache folder included.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _restrict_files(read: Sequence[str], write: Sequence[str]) -> None:
    if platform.system() != "Linux":
        raise OSError(0, "not Linux")
    version = _checked(_libc.syscall(_SYS_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION_FLAG), "landlock")
    everything = _FS_FIRST_VERSION
    for since, right in ((2, _FS_REFER), (3, _FS_TRUNCATE), (5, _FS_IOCTL_DEV)):
        everything |= right if version >= since else 0
    rules = _Ruleset(
        everything,
        _NET_BIND_AND_CONNECT if version >= 4 else 0,
        _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0,
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _checked(_libc.syscall(_SYS_LANDLOCK_CREATE, ctypes.byref(rules), size, 0), "landlock_create_ruleset")
    try:
        may_write = everything & ~_FS_EXECUTE
        for rights, paths in ((_FS_READ_FILE | _FS_READ_DIR, read), (may_write, write)):
            for path in paths:
                _allow_path(ruleset, path, rights)
        _checked(_libc.syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _PathRule(rights if os.path.isdir(path) else rights & _FILE_RIGHTS, fd)
        added = _libc.syscall(_SYS_LANDLOCK_ADD, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
        _checked(added, f"landlock_add_rule {path}")
    finally:
        os.close(fd)
