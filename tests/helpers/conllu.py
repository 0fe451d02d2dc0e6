"""The text of CoNLL-U, for comparing it with the text that was tagged."""

from elmo_hf.tagging.spaces import unescape_spaces


def rebuild(conllu: str) -> str:
    """The text of CoNLL-U, by its tokens and its last column alone."""
    text, covered = "", 0
    for line in conllu.split("\n"):
        if not line or line.startswith("#"):
            covered = 0
            continue
        number, form, *_, misc = line.split("\t")
        if "-" in number:
            covered = int(number.split("-")[1])
        elif int(number) <= covered:
            continue
        notes = dict(note.split("=", 1) for note in misc.split("|") if "=" in note)
        after = "" if notes.get("SpaceAfter") == "No" else notes.get("SpacesAfter", r"\s")
        text += unescape_spaces(notes.get("SpacesBefore", "")) + form + unescape_spaces(after)
    return text
