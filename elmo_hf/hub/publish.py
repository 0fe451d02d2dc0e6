# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Publishing a model folder on the Hub: weights, configuration, tokenizer, card and code."""

from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import HfApi

# HTTPError is that of the HTTP client, which differs between versions of huggingface_hub.
from huggingface_hub.errors import HfHubHTTPError, HTTPError, LocalTokenNotFoundError

from elmo_hf.dictionaries import CHARACTERS_FILE, WORDS_FILE
from elmo_hf.hub.cards import plain_card
from elmo_hf.hub.loading import INDEX, saved_class, weight_files
from elmo_hf.remote_code import add_code
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import read_tensor_shapes, refuse_unreadable

SHARDS = "model*.safetensors"
# The files of a model. Checkpoints, caches and reports of a training run are not published.
PUBLISHED = (
    "config.json",
    SHARDS,
    INDEX,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "lm_vocabulary.txt",
    CHARACTERS_FILE,
    WORDS_FILE,
    "README.md",
    "all_results.json",
)


def publish(folder: str | Path, repo: str, private: bool = False) -> str:
    """Uploads a model folder in one commit to a new or existing repository; returns its address."""
    folder = Path(folder).resolve()
    if not (folder / "config.json").exists():
        refuse_unreadable(folder / "config.json")
        raise FileNotFoundError(f"{str(folder)!r} is not a model folder: it has no config.json.")
    kind = saved_class(str(folder))
    check_weights(folder)
    with TemporaryDirectory() as name:
        staging = Path(name)
        for pattern in PUBLISHED:
            for file in folder.glob(pattern):
                refuse_link_outside(folder, file)
                (staging / file.name).symlink_to(file)
        add_code(staging)
        if not (staging / "README.md").exists():
            card = plain_card(kind or "ElmoModel", repo)
            (staging / "README.md").write_text(card, encoding="utf-8")
        return upload(staging, repo, private)


def refuse_link_outside(folder: Path, file: Path) -> None:
    """A folder from a stranger may link to any file of the user, which would be published."""
    refuse_unreadable(file)
    if not file.resolve().is_relative_to(folder):
        raise ValueError(
            f"{str(file)!r} is a link to a file outside the folder; put the file itself there to "
            "publish it."
        )


def check_weights(folder: Path) -> None:
    """Refuses damaged weights, and weights of which a part is not in the folder itself."""
    files = {file.name for file in folder.glob(SHARDS)}
    if (folder / INDEX).exists():
        named = set(weight_files(folder / INDEX))
        missing = sorted(name for name in named if not fnmatch(name, SHARDS) or "/" in name)
        missing += sorted(named - files)
        if missing:
            raise ValueError(
                f"{str(folder)!r} has a part of its weights elsewhere ({missing[0]}); load the "
                "model and push the folder that `save_pretrained` makes of it."
            )
    for name in sorted(files):
        read_tensor_shapes(folder / name)


def upload(folder: Path, repo: str, private: bool) -> str:
    """Uploads all files of a folder; what can go wrong is reported in one sentence."""
    api = HfApi()
    try:
        # a wrong token is reported before anything is sent
        api.whoami()
        address = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(folder_path=folder, repo_id=address.repo_id)
    except (HfHubHTTPError, LocalTokenNotFoundError) as error:
        response = getattr(error, "response", None)
        if response is None or response.status_code in (401, 403):
            raise PermissionError(
                f"The Hub does not allow writing to {repo!r} with this token or without one; log "
                "in with `hf auth login`, or set HF_TOKEN to a token with write access."
            ) from None
        raise OSError(f"The Hub refused {repo!r}: {first_line(error)}.") from error
    except (HTTPError, OSError, RuntimeError) as error:
        # lost connections: of the HTTP client, of the system, and of the upload of large files
        raise OSError(
            f"The push to {repo!r} was interrupted ({first_line(error)}); nothing was uploaded. "
            "Repeat the command to try again."
        ) from error
    return str(address)
