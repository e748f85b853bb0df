"""Makes a stand-in for SO-DS, so that the paper profile can be tried without a network.

The stand-in has snippets and queries of the mini corpus, in the published format of SO-DS.
`python tests/stackoverflow/stand_in.py 1000` writes it where the download would be.
"""

import sys
from pathlib import Path

from lookuplab import paths
from lookuplab.paths import hashed
from lookuplab.run import downloads
from lookuplab.stackoverflow import corpus
from recipes import write_rows


def write(folder: Path, size: int) -> None:
    """Write ``size`` / 10 queries for validation, as many for testing, the snippets that answer
    these queries, and ``size`` more snippets.
    """
    known = {one.id: one for one in corpus.load_snippets("mini")}
    files = {}
    needed = {}
    for part in ("valid", "test"):
        queries = sorted(corpus.queries("mini", part), key=lambda one: hashed(f"so-ds {one.text}"))
        asked = queries[: size // 10]
        files[part] = [{"query": one.text, "relevant_ids": one.relevant} for one in asked]
        needed |= dict.fromkeys(id for one in asked for id in one.relevant)
    files["snippets"] = [
        {
            "attribution": ["https://stackoverflow.com", known[id].source],
            "language": "python",
            "id": id,
            "code": known[id].code,
            "description": known[id].description,
        }
        for id in needed | dict.fromkeys(sorted(known, key=hashed)[:size])
    ]
    for part, records in files.items():
        place = downloads.find(f"so-ds-{part}").path.relative_to(paths.DOWNLOADS)
        write_rows(folder / place, records)


if __name__ == "__main__":
    write(paths.DOWNLOADS, int(sys.argv[1]))
