"""A run's figures in other people's dashboards: trackio, W&B and TensorBoard behind one small interface.

The records are what counts, so a tracker is a guest: it is imported when it is asked for, stays on this machine unless
its own environment variables say otherwise (WANDB_MODE, TRACKIO_SPACE_ID), and one that fails is dropped, not obeyed.
"""

import contextlib
import contextvars
import importlib
import io
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from redqueen.errors import ConfigError, did_you_mean
from redqueen.settings.models import TrackConfig

ID_FILE = "tracker_id"
"""In the run's folder: what a resumed run finds its own figures again by, wherever the folder has been moved to."""
TENSORBOARD_FOLDER = "tensorboard"


class Tracker(Protocol):
    """One dashboard."""

    @property
    def name(self) -> str: ...

    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def close(self) -> None:
        """Whether this works or fails, the next time it does nothing."""
        ...


@contextlib.contextmanager
def tracking(
    to: TrackConfig, run_folder: Path, *, config: dict[str, Any], say: Callable[[str], None]
) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """What logs the figures of a step where the settings say, as long as each tracker works."""
    trackers = open_trackers(to.to, run_folder, to.project, run_folder.name, config, online=to.online)

    def track(step: int, values: Mapping[str, float]) -> None:
        nonlocal trackers
        trackers = log_to(trackers, step, values, say)

    try:
        yield track
    finally:
        close_trackers(trackers, say)


def open_trackers(
    names: Sequence[str],
    run_folder: Path,
    project: str,
    run_name: str,
    config: dict[str, Any],
    *,
    online: bool = False,
) -> list[Tracker]:
    """The trackers called so. A run that is resumed goes on in the same place."""
    refuse_unknown(names)
    # All of them first: a package that is missing must not leave another tracker's run half open.
    for name in dict.fromkeys(names):
        _import(name)
    opened: list[Tracker] = []
    for name in dict.fromkeys(names):
        try:
            opened.append(TRACKERS[name](run_folder, project, run_name, config, online))
        except Exception as error:  # whatever its package raises
            close_trackers(opened, lambda _: None)
            raise ConfigError(f"{name} cannot be opened: {_why(error)}", "mend it, or leave this tracker out") from None
    return opened


def refuse_unknown(names: Sequence[str]) -> None:
    for name in names:
        if name not in TRACKERS:
            mend = did_you_mean(name, TRACKERS, f"use {', '.join(TRACKERS)}")
            raise ConfigError(f"there is no tracker {name}", mend)


def log_to(
    trackers: Sequence[Tracker], step: int, values: Mapping[str, float], say: Callable[[str], None]
) -> list[Tracker]:
    """Log to each; those that go on working. One that fails is closed, and said once."""
    working: list[Tracker] = []
    for tracker in trackers:
        try:
            tracker.log(step, values)
            working.append(tracker)
        except Exception as error:  # whatever its package raises: no dashboard is worth a run
            say(f"{tracker.name} failed at step {step} and gets nothing more: {_why(error)}")
            close_trackers([tracker], lambda _: None)
    return working


def close_trackers(trackers: Sequence[Tracker], say: Callable[[str], None]) -> None:
    for tracker in trackers:
        try:
            tracker.close()
        except Exception as error:
            say(f"{tracker.name} could not be closed: {_why(error)}")


class Trackio:
    """Into trackio's own folder, which `trackio show` reads.

    Steps that a resumed run plays again are there twice, with the same values.
    """

    name = "trackio"

    def __init__(self, run_folder: Path, project: str, run_name: str, config: dict[str, Any], online: bool) -> None:
        trackio = _import(self.name)
        # trackio keeps "the" current run in context variables and ends it when another begins: in a context of its
        # own, each of several races keeps its run.
        self._context = contextvars.copy_context()
        with _silent():
            self._run = self._context.run(
                trackio.init,
                project=project,
                # It finds a run by its name alone.
                name=f"{run_name}-{_id(run_folder)}",
                resume="allow",
                config=config,
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        self._finish: Any = trackio.finish

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            with _silent():
                self._context.run(finish)


class Wandb:
    """Into the run's folder, for `wandb sync`; straight to the server where the settings or WANDB_MODE say so."""

    name = "wandb"

    def __init__(self, run_folder: Path, project: str, run_name: str, config: dict[str, Any], online: bool) -> None:
        wandb = _import(self.name)
        self._run: Any = wandb.init(
            project=project,
            name=run_name,
            id=_id(run_folder),
            resume="allow",
            mode="online" if online else os.environ.get("WANDB_MODE", "offline"),
            dir=str(run_folder),
            config=config,
            # It would otherwise print beside the live view, and record the view as the run's output.
            settings=wandb.Settings(silent=True, console="off"),
            reinit="create_new",
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.finish()


class TensorBoard:
    """Event files in the run's folder."""

    name = "tensorboard"

    def __init__(self, run_folder: Path, project: str, run_name: str, config: dict[str, Any], online: bool) -> None:
        self._make = _import(self.name).SummaryWriter
        self._folder = run_folder / TENSORBOARD_FOLDER
        self._writer: Any = None

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is None:
            # Hides what an earlier process logged from this step on, which the run has gone back to.
            self._writer = self._make(str(self._folder), purge_step=step)
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


TRACKERS: dict[str, Callable[[Path, str, str, dict[str, Any], bool], Tracker]] = {
    "trackio": Trackio,
    "wandb": Wandb,
    "tensorboard": TensorBoard,
}
_MODULES = {"trackio": "trackio", "wandb": "wandb", "tensorboard": "torch.utils.tensorboard"}


def _import(name: str) -> Any:
    try:
        return importlib.import_module(_MODULES[name])
    except ImportError:
        raise ConfigError(f"the tracker {name} is not installed", "pip install 'redqueen[track]'") from None


def _id(run_folder: Path) -> str:
    """The run's name among all runs, drawn once."""
    file = run_folder / ID_FILE
    with contextlib.suppress(FileNotFoundError):
        if known := file.read_text().strip():
            return known
    drawn = secrets.token_hex(4)
    file.write_text(f"{drawn}\n")
    return drawn


def _why(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without the greetings that trackio prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
