"""The races of a study and their exam, in this process or shared among several, each with its own engine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

import torch

from redqueen.errors import InputError, Interrupted, UserError
from redqueen.evals.figures import Tally
from redqueen.training.study.design import StudyRace
from redqueen.training.study.exam import Examinee, HalfExam
from redqueen.training.study.races import RaceProgress, run_and_examine
from redqueen.verifier.zygotes import available_cores


def run_all(races: Sequence[StudyRace], exam: HalfExam, jobs: int = 1) -> dict[Examinee, Tally]:
    """All answers once all races are at their end; Interrupted says that a signal stopped them."""
    jobs = min(jobs, len(races))
    if jobs == 1:
        run_and_examine(races, exam, RaceProgress(races), bare=True)
    else:
        _run_jobs(races, exam, jobs)
    return exam.answers()


def _run_jobs(races: Sequence[StudyRace], exam: HalfExam, jobs: int) -> None:
    """The same in several processes. The first error stops the others, which save what they have."""
    context = multiprocessing.get_context("spawn")
    children: dict[Connection, SpawnProcess] = {}
    for at in range(jobs):
        ours, theirs = context.Pipe(duplex=False)
        # Every `jobs`-th race, since arms differ in their cost and an arm's races are side by side.
        child = context.Process(target=_job, args=(theirs, races[at::jobs], exam, at + 1, jobs))
        child.start()
        theirs.close()
        children[ours] = child
    stopped, first_error, unfinished = None, None, 0

    def stop(number: int, _: object = None) -> None:
        nonlocal stopped
        stopped = stopped or number
        for child in children.values():
            if child.is_alive():
                child.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        open_pipes = set(children)
        while open_pipes:
            for pipe in wait(list(open_pipes)):
                assert isinstance(pipe, Connection)
                open_pipes.discard(pipe)
                try:
                    error: UserError | Interrupted | None = pipe.recv()
                except EOFError:
                    mend = "give the same command again: it goes on from there"
                    died = InputError("a process of the study died", mend)
                    error = died if stopped is None else Interrupted(stopped)
                unfinished += error is not None
                if isinstance(error, Interrupted) and stopped is None:
                    stop(error.signal)
                elif isinstance(error, UserError) and first_error is None:
                    first_error = error
                    stop(signal.SIGTERM)
        for child in children.values():
            child.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if first_error is not None:
        raise first_error
    if stopped is not None and unfinished:
        raise Interrupted(stopped)


def _job(pipe: Connection, races: Sequence[StudyRace], exam: HalfExam, number: int, jobs: int) -> None:
    """One of the processes, which dies with its parent. A terminal's Ctrl-C reaches the parent alone, which passes it
    on."""
    os.setpgrp()
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    share = max(1, available_cores() // jobs)
    torch.set_num_threads(share)
    progress = RaceProgress(races, f"job {number} of {jobs}: ")
    try:
        run_and_examine(races, exam, progress, bare=number == 1, workers=share, jobs=jobs)
        pipe.send(None)
    except (UserError, Interrupted) as error:
        pipe.send(error)
