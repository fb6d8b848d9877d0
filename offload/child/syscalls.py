"""The kernel calls that a boxed child never needs, refused by a seccomp filter that every thread gets.

The list is of refusals, not of permissions: the math libraries' needs vary by machine; files are Landlock's job.
Refused calls fail with EPERM. Numbers are those of x86-64; elsewhere the layer reports itself missing. Sources:
seccomp(2), asm/unistd_64.h. Must not know what the child does.
"""

import ctypes
import os
import platform
import struct

__all__ = ["DENIED_X86_64", "deny_syscalls"]

DENIED_X86_64 = {
    # network
    "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "sendmsg": 46, "bind": 49, "listen": 50, "socketpair": 53,
    "accept4": 288, "sendmmsg": 307,
    # other programs and processes
    "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "kill": 62, "tkill": 200, "rt_sigqueueinfo": 129,
    "rt_tgsigqueueinfo": 297, "pidfd_send_signal": 424, "pidfd_open": 434, "pidfd_getfd": 438, "ptrace": 101,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "process_madvise": 440,
    # ways round the other walls
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    "open_by_handle_at": 304, "io_uring_setup": 425, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298,
    "kexec_load": 246, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "add_key": 248, "request_key": 249, "keyctl": 250,
}

_SYS_SECCOMP_X86_64 = 317
_SET_MODE_FILTER = 1
_FLAG_TSYNC = 1
_AUDIT_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_LOAD_WORD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCH = 0, 4
_KILL_PROCESS, _ALLOW, _FAIL_WITH_EPERM = 0x80000000, 0x7FFF0000, 0x00050000 | 1

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def deny_syscalls() -> None:
    """Refuse the listed calls from now on, in all threads. Raises OSError where that can't be done.

    Needs no_new_privs to be set before, or privileges.
    """
    if platform.machine() != "x86_64":
        raise OSError(0, f"no list for {platform.machine()}")
    code = _assemble(tuple(DENIED_X86_64.values()))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    result = _libc.syscall(_SYS_SECCOMP_X86_64, _SET_MODE_FILTER, _FLAG_TSYNC, ctypes.byref(program))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
    if result > 0:
        raise OSError(0, f"seccomp: thread {result} could not be included")


def _assemble(denied: tuple[int, ...]) -> bytes:
    """The filter program: another architecture is killed, listed and x32 numbers fail, everything else passes."""
    def instruction(code: int, when_true: int, when_false: int, value: int) -> bytes:
        return struct.pack("<HBBI", code, when_true, when_false, value)

    count = len(denied)
    return b"".join((
        instruction(_LOAD_WORD, 0, 0, _OFFSET_ARCH),
        instruction(_JUMP_EQUAL, 1, 0, _AUDIT_ARCH_X86_64),
        instruction(_RETURN, 0, 0, _KILL_PROCESS),
        instruction(_LOAD_WORD, 0, 0, _OFFSET_NUMBER),
        instruction(_JUMP_AT_LEAST, count + 1, 0, _X32_BIT),
        *(instruction(_JUMP_EQUAL, count - index, 0, number) for index, number in enumerate(denied)),
        instruction(_RETURN, 0, 0, _ALLOW),
        instruction(_RETURN, 0, 0, _FAIL_WITH_EPERM),
    ))
