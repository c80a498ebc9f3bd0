"""bad_disk.py reads|inodes COMMAND...: runs it with a disk that fails to read from the second MiB of any file on, or
that fails to read inodes.

The kernel itself answers so: a filter of system calls (seccomp, no root needed) returns EIO to pread64 and preadv2
at such offsets, or to fstat, which glibc does not need since 2.33. All other calls go through.
"""

import ctypes
import os
import platform
import struct
import sys

FSTAT, PREAD64, PREADV2 = {"x86_64": (5, 17, 327), "aarch64": (80, 67, 286)}[platform.machine()]
LIMIT, EIO = 1 << 20, 5
# Words of struct seccomp_data: the number, and the low half of the fourth argument, which is the offset in both.
NUMBER, OFFSET = 0, 16 + 3 * 8
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | EIO

# (code, jump if true, jump if not, value)
PROGRAMS = {
    "reads": [
        (LOAD, 0, 0, NUMBER),
        (IF_EQUAL, 1, 0, PREAD64),
        (IF_EQUAL, 0, 3, PREADV2),
        (LOAD, 0, 0, OFFSET),
        (IF_AT_LEAST, 0, 1, LIMIT),
        (RETURN, 0, 0, FAIL),
        (RETURN, 0, 0, ALLOW),
    ],
    "inodes": [
        (LOAD, 0, 0, NUMBER),
        (IF_EQUAL, 0, 1, FSTAT),
        (RETURN, 0, 0, FAIL),
        (RETURN, 0, 0, ALLOW),
    ],
}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def main():
    filtering = PROGRAMS[sys.argv[1]]
    code = b"".join(struct.pack("HBBI", *it) for it in filtering)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filtering), ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit(99)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0):
        sys.exit(f"this kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[2], sys.argv[2:])


main()
