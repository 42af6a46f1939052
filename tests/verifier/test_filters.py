"""The filters do to every system call what their tables say, on both architectures, wherever the tests run."""

import struct
from functools import cache

import pytest
from bpf import LOAD, MAX_INSTRUCTIONS, RETURN, Instruction, Malformed, call, check, decide
from hypothesis import given
from hypothesis import strategies as st

from redqueen.verifier.guest import filters
from redqueen.verifier.guest.filters import ALLOW, ARCHITECTURES, KILL, REFUSE, TRY_AGAIN

X32_BIT = 0x40000000
OTHER_ARCHITECTURES = {"i386": 0x40000003, "arm": 0x40000028, "aarch64 big-endian": 0x800000B7, "none": 0}
NUMBERS = [*range(601), 1023, 1024, 4096, 0xFFFF, 0x10000, X32_BIT - 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
SIGCHLD = 17
CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x00200000, 0x01000000
FORK_FLAGS = CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD
CLONE_FLAGS = {
    "CLONE_VM": 0x100, "CLONE_FS": 0x200, "CLONE_FILES": 0x400, "CLONE_SIGHAND": 0x800, "CLONE_PIDFD": 0x1000,
    "CLONE_PTRACE": 0x2000, "CLONE_VFORK": 0x4000, "CLONE_PARENT": 0x8000, "CLONE_THREAD": 0x10000,
    "CLONE_NEWNS": 0x20000, "CLONE_SYSVSEM": 0x40000, "CLONE_SETTLS": 0x80000, "CLONE_PARENT_SETTID": 0x100000,
    "CLONE_DETACHED": 0x400000, "CLONE_UNTRACED": 0x800000, "CLONE_NEWCGROUP": 0x2000000, "CLONE_NEWUTS": 0x4000000,
    "CLONE_NEWIPC": 0x8000000, "CLONE_NEWUSER": 0x10000000, "CLONE_NEWPID": 0x20000000, "CLONE_NEWNET": 0x40000000,
    "CLONE_NEWTIME": 0x80, "CLONE_IO": 0x80000000,
}  # fmt: skip
"""Every flag but the two that fork() passes."""
FUTEX_PRIVATE, FUTEX_CLOCK_REALTIME = 128, 256
FUTEX_COMMANDS = {
    "WAIT": 0, "WAKE": 1, "FD": 2, "REQUEUE": 3, "CMP_REQUEUE": 4, "WAKE_OP": 5, "LOCK_PI": 6, "UNLOCK_PI": 7,
    "TRYLOCK_PI": 8, "WAIT_BITSET": 9, "WAKE_BITSET": 10, "WAIT_REQUEUE_PI": 11, "CMP_REQUEUE_PI": 12, "LOCK_PI2": 13,
}  # fmt: skip

TABLES = {"allowed": filters._ALLOWED, "zygote": filters._ZYGOTE, "refused": filters._REFUSED}

# Numbers from the kernel's own headers, written down a second time: what the tables leave out can't be read from them.
KILLED = """
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272, pidfd_getfd 438 438,
process_madvise 440 440, process_mrelease 448 448, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282,
seccomp 317 277, landlock_create_ruleset 444 444, landlock_add_rule 445 445, landlock_restrict_self 446 446,
keyctl 250 219, add_key 248 217, request_key 249 218, io_uring_setup 425 425, io_uring_enter 426 426,
io_uring_register 427 427, io_setup 206 0, io_submit 209 2, unshare 272 97, setns 308 268, mount 165 40,
umount2 166 39, pivot_root 155 41, mount_setattr 442 442, move_mount 429 429, open_tree 428 428,
fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, open_by_handle_at 304 265,
name_to_handle_at 303 264, fanotify_init 300 262, init_module 175 105, finit_module 313 273,
delete_module 176 106, kexec_load 246 104, kexec_file_load 320 294, reboot 169 142, swapon 167 224,
swapoff 168 225, acct 163 89, syslog 103 116, quotactl 179 60, vhangup 153 58, personality 135 92,
capset 126 91, shmget 29 194, shmat 30 196, shmdt 67 197, shmctl 31 195, msgget 68 186, msgsnd 69 189,
msgrcv 70 188, msgctl 71 187, semget 64 190, semop 65 193, semctl 66 191, mq_open 240 180, mq_unlink 241 181,
mq_timedsend 242 182, mq_timedreceive 243 183, memfd_create 319 279, memfd_secret 447 447,
remap_file_pages 216 234, pkey_mprotect 329 288, pkey_alloc 330 289, move_pages 279 239,
migrate_pages 256 238, mbind 237 235, set_mempolicy 238 237, vmsplice 278 75, tee 276 77,
timer_delete 226 111, timer_gettime 224 108, timerfd_settime 286 86, adjtimex 159 171, clock_adjtime 305 266,
sched_setattr 314 274, rt_sigsuspend 130 133, membarrier 324 283, get_robust_list 274 100,
set_tid_address 218 96, futex_waitv 449 449, preadv2 327 286, pwritev2 328 287, create_module 174 -,
uselib 134 -, iopl 172 -, ioperm 173 -, modify_ldt 154 -, arch_prctl 158 -, pause 34 -, _sysctl 156 -,
poll 7 -, ppoll 271 73
"""
REFUSED = """
read 0 63, recvmsg 47 212, sendmsg 46 211, openat 257 56, socket 41 198, connect 42 203, execve 59 221,
execveat 322 281, kill 62 129, tgkill 234 131, prctl 157 167, clone 56 220, clone3 435 435, fork 57 -, vfork 58 -,
dup 32 23, fcntl 72 25, ioctl 16 29, setrlimit 160 164, prlimit64 302 261, timer_create 222 107, timer_settime 223 110,
settimeofday 164 170, clock_settime 227 112, nanosleep 35 101, writev 20 66, rt_sigaction 13 134, wait4 61 260,
chroot 161 51
"""
ALLOWED = "exit_group 231 94, brk 12 214, munmap 11 215, futex 202 98, getpid 39 172, clock_gettime 228 113, close 3 57"

machines = pytest.mark.parametrize("machine", ARCHITECTURES)
any_machine = st.sampled_from(list(ARCHITECTURES))
whole_argument = st.integers(0, 2**64 - 1)


def rows(table: str) -> list[tuple[str, dict[str, int]]]:
    """(name, machine -> number), read here in a second way so that a wrong column in the product shows."""
    split = [row.split() for row in table.split(",")]
    columns = list(zip(("x86_64", "aarch64"), (1, 2), strict=True))
    return [(row[0], {machine: int(row[at]) for machine, at in columns if row[at] != "-"}) for row in split]


def numbers(table: str, machine: str) -> dict[str, int]:
    return {name: by_machine[machine] for name, by_machine in rows(table) if machine in by_machine}


@cache
def installed(machine: str) -> list[list[Instruction]]:
    """A child's filters, the zygote's first."""
    return [check(filters.zygote_filter(machine)), check(filters.child_filter(machine))]


def in_zygote(machine: str, nr: int, *arguments: int, arch: int | None = None) -> int:
    return decide(installed(machine)[:1], call(nr, ARCHITECTURES[machine] if arch is None else arch, arguments))


def in_child(machine: str, nr: int, *arguments: int, arch: int | None = None) -> int:
    return decide(installed(machine), call(nr, ARCHITECTURES[machine] if arch is None else arch, arguments))


def harmless_arguments(machine: str) -> dict[int, tuple[int, ...]]:
    """Arguments with which the calls that are judged by them are allowed."""
    by_name = {
        "write": (3,),
        "mmap": (0, 0, PROT_READ | PROT_WRITE),
        "mprotect": (0, 0, PROT_READ),
        "clone": (FORK_FLAGS,),
        "futex": (0, 1),
    }
    return {filters.number(name, machine): arguments for name, arguments in by_name.items()}


@machines
def test_every_number_gets_what_the_tables_say(machine):
    allowed, zygote, refused = (set(numbers(table, machine).values()) for table in TABLES.values())
    waits = {nr for name, nr in numbers(TABLES["zygote"], machine).items() if name in ("poll", "ppoll")}
    harmless = harmless_arguments(machine)
    for nr in NUMBERS:
        arguments = harmless.get(nr, ())
        before = ALLOW if nr in allowed | zygote else REFUSE if nr in refused else KILL
        after = KILL if nr in waits else REFUSE if nr in zygote else before
        assert in_zygote(machine, nr, *arguments) == before, f"{nr} in the zygote"
        assert in_child(machine, nr, *arguments) == after, f"{nr} in a child"


@pytest.mark.parametrize("name", dict(rows(KILLED)))
def test_a_dangerous_call_kills_a_child(name):
    for machine, nr in dict(rows(KILLED))[name].items():
        assert in_child(machine, nr) == KILL


@pytest.mark.parametrize("name", dict(rows(REFUSED)))
def test_an_ordinary_call_that_a_child_may_not_make_is_refused(name):
    for machine, nr in dict(rows(REFUSED))[name].items():
        assert in_child(machine, nr, FORK_FLAGS) == REFUSE
        assert filters.number(name, machine) == nr


@pytest.mark.parametrize("name", dict(rows(ALLOWED)))
def test_what_an_interpreter_needs_is_allowed(name):
    for machine, nr in dict(rows(ALLOWED))[name].items():
        assert in_child(machine, nr, *harmless_arguments(machine).get(nr, ())) == ALLOW
        assert filters.number(name, machine) == nr


@machines
def test_no_call_is_listed_twice(machine):
    listed = [(name, by_machine) for table in TABLES.values() for name, by_machine in rows(table)]
    names = [name for name, _ in listed]
    on_machine = [by_machine[machine] for _, by_machine in listed if machine in by_machine]
    assert len(names) == len(set(names))
    assert len(on_machine) == len(set(on_machine))


@machines
def test_the_tables_are_read_whole_and_by_the_right_column(machine):
    for table in TABLES.values():
        assert filters.calls(table, machine) == numbers(table, machine)


@machines
def test_calls_of_another_architecture_kill(machine):
    others = {**OTHER_ARCHITECTURES, **{name: arch for name, arch in ARCHITECTURES.items() if name != machine}}
    harmless = harmless_arguments(machine)
    for name, arch in others.items():
        for nr in NUMBERS:
            arguments = harmless.get(nr, ())
            assert in_zygote(machine, nr, *arguments, arch=arch) == KILL, f"{name} {nr}"
            assert in_child(machine, nr, *arguments, arch=arch) == KILL, f"{name} {nr}"


@machines
def test_numbers_of_the_x32_abi_kill(machine):
    harmless = harmless_arguments(machine)
    for nr in range(601):
        arguments = harmless.get(nr, ())
        assert in_zygote(machine, X32_BIT | nr, *arguments) == KILL
        assert in_child(machine, X32_BIT | nr, *arguments) == KILL


@pytest.mark.parametrize("name", ["mmap", "mprotect"])
@machines
def test_memory_may_be_mapped_but_never_made_executable(machine, name):
    nr = filters.number(name, machine)
    for prot in range(16):
        wanted = REFUSE if prot & PROT_EXEC else ALLOW
        assert in_zygote(machine, nr, 0, 4096, prot) == wanted
        assert in_child(machine, nr, 0, 4096, prot) == wanted


@given(any_machine, st.sampled_from(["mmap", "mprotect"]), st.tuples(*[whole_argument] * 6))
def test_nothing_but_the_protection_decides_about_a_mapping(machine, name, arguments):
    wanted = REFUSE if arguments[2] & PROT_EXEC else ALLOW
    assert in_child(machine, filters.number(name, machine), *arguments) == wanted


@machines
def test_a_zygote_may_fork_and_a_child_may_not(machine):
    nr = filters.number("clone", machine)
    assert in_zygote(machine, nr, FORK_FLAGS) == ALLOW
    assert in_child(machine, nr, FORK_FLAGS) == REFUSE


@pytest.mark.parametrize("flag", CLONE_FLAGS)
@machines
def test_clone_with_any_flag_that_fork_does_not_pass_is_refused(machine, flag):
    nr = filters.number("clone", machine)
    for flags in (CLONE_FLAGS[flag], CLONE_FLAGS[flag] | SIGCHLD, CLONE_FLAGS[flag] | FORK_FLAGS):
        assert in_zygote(machine, nr, flags) == REFUSE
        assert in_child(machine, nr, flags) == REFUSE


def test_forks_flags_and_the_refused_ones_are_all_there_are():
    known = FORK_FLAGS
    for flag in CLONE_FLAGS.values():
        assert known & flag == 0
        known |= flag
    assert known | 0xFF == 0xFFFFFFFF  # the low byte is the signal at the child's end


@given(any_machine, st.integers(0, 2**32 - 1))
def test_a_zygote_may_clone_with_forks_flags_and_no_others(machine, flags):
    wanted = REFUSE if flags & ~FORK_FLAGS else ALLOW
    assert in_zygote(machine, filters.number("clone", machine), flags) == wanted


@pytest.mark.parametrize("name", FUTEX_COMMANDS)
@machines
def test_a_futex_wakes_and_no_one_sleeps_on_it(machine, name):
    """Python's locks wait for a bitset: told to try again, they use up their time."""
    nr = filters.number("futex", machine)
    wanted = {"WAKE": ALLOW, "WAKE_BITSET": ALLOW, "WAIT_BITSET": TRY_AGAIN, "WAIT": KILL}.get(name, REFUSE)
    for flags in (0, FUTEX_PRIVATE, FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME):
        assert in_zygote(machine, nr, 0x1000, FUTEX_COMMANDS[name] | flags) == wanted
        assert in_child(machine, nr, 0x1000, FUTEX_COMMANDS[name] | flags) == wanted


@given(any_machine, whole_argument)
def test_no_futex_command_is_allowed_but_those_two(machine, operation):
    """futex() takes the low half of the register, and the command is in its low seven bits."""
    wanted = {0: KILL, 1: ALLOW, 9: TRY_AGAIN, 10: ALLOW}.get(operation & 0x7F, REFUSE)
    assert in_child(machine, filters.number("futex", machine), 0x1000, operation) == wanted


@pytest.mark.parametrize("name", ["clock_gettime", "clock_getres"])
@machines
def test_the_kernels_own_clocks_may_be_read_and_no_process_clock(machine, name):
    nr = filters.number(name, machine)
    for clock in range(16):
        assert in_child(machine, nr, clock) == ALLOW
    for who in (0, 1, 2, 4242, 4194303):
        for kind in range(8):  # of the process or of the thread; in all, in user mode or as scheduled; of a descriptor
            assert in_child(machine, nr, (~who << 3 | kind) & 0xFFFFFFFF) == REFUSE
            assert in_child(machine, nr, (~who << 3 | kind) & 0xFFFFFFFFFFFFFFFF) == REFUSE


@given(any_machine, st.sampled_from(["clock_gettime", "clock_getres"]), whole_argument)
def test_a_clocks_id_is_read_as_the_kernel_reads_it(machine, name, clock):
    """clockid_t is an int: the low half of the register."""
    nr = filters.number(name, machine)
    assert in_child(machine, nr, clock) == (REFUSE if clock & 0xFFFFFFF0 else ALLOW)
    assert in_child(machine, nr, clock & ~0xFFFFFFF0) == ALLOW


@machines
def test_a_zygote_may_make_a_timer_on_any_clock(machine):
    """A child's CPU timer may run on its process's own clock, whose id is negative; its program makes no timers."""
    nr = filters.number("timer_create", machine)
    for clock in (1, 2, -7 & 0xFFFFFFFF, -7 & 0xFFFFFFFFFFFFFFFF):
        assert in_zygote(machine, nr, clock) == ALLOW
        assert in_child(machine, nr, clock) == REFUSE


@machines
def test_a_child_writes_to_its_reply_and_to_nothing_else(machine):
    nr = filters.number("write", machine)
    assert filters.REPLY_FD == 3
    assert in_child(machine, nr, 3) == ALLOW
    for fd in (0, 1, 2, 4, 5, 10, 11, 255, 0x103, 0x30000, 0x7FFFFFFF, 0x80000003, 0xFFFFFFFF):
        assert in_child(machine, nr, fd) == REFUSE
        assert in_zygote(machine, nr, fd) == ALLOW


@given(any_machine, whole_argument)
def test_a_descriptor_is_read_as_the_kernel_reads_it(machine, fd):
    """write() takes the low half of the register."""
    wanted = ALLOW if fd & 0xFFFFFFFF == 3 else REFUSE
    assert in_child(machine, filters.number("write", machine), fd) == wanted
    high = fd & ~0xFFFFFFFF
    assert in_child(machine, filters.number("write", machine), high | 3) == ALLOW


@machines
def test_filters_are_small(machine):
    """The child's is installed once per job."""
    zygote, child = installed(machine)
    assert len(zygote) < 400
    assert len(child) < 60


def test_the_actions_are_the_kernels():
    assert KILL == 0x80000000  # the process, not the thread
    assert REFUSE == 0x00050000 | 13  # EACCES
    assert ALLOW == 0x7FFF0000


def assembled(*instructions: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in instructions)


@pytest.mark.parametrize(
    "program",
    [
        b"",
        assembled((RETURN, 0, 0, ALLOW))[:-1],
        assembled((0x16, 0, 0, 0), (RETURN, 0, 0, ALLOW)),
        assembled((LOAD, 0, 0, 0)),
        assembled((LOAD, 0, 0, 62), (RETURN, 0, 0, ALLOW)),
        assembled((LOAD, 0, 0, 64), (RETURN, 0, 0, ALLOW)),
        assembled((0x15, 1, 0, 0), (RETURN, 0, 0, ALLOW)),
        assembled((0x15, 0, 1, 0), (RETURN, 0, 0, ALLOW)),
        assembled(*[(RETURN, 0, 0, ALLOW)] * (MAX_INSTRUCTIONS + 1)),
    ],
    ids=["empty", "torn", "unknown", "no return", "unaligned", "outside", "far true", "far false", "too long"],
)
def test_the_interpreter_refuses_what_the_kernel_refuses(program):
    with pytest.raises(Malformed):
        check(program)


@pytest.mark.parametrize(
    ("older", "newer", "decided"),
    [
        (ALLOW, REFUSE, REFUSE),
        (REFUSE, ALLOW, REFUSE),
        (KILL, ALLOW, KILL),
        (ALLOW, KILL, KILL),
        (KILL, REFUSE, KILL),
        (REFUSE, KILL, KILL),
        (0x00050001, 0x00050002, 0x00050002),
    ],
)
def test_of_several_filters_the_sternest_decides(older, newer, decided):
    both = [check(assembled((RETURN, 0, 0, value))) for value in (older, newer)]
    assert decide(both, call(0, 0)) == decided
