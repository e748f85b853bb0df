"""What Jedi offered, kept on disk beside the completion store: runs and notebooks ask mostly the same questions."""

from pathlib import Path

from lookuplab.models.answer_store import AnswerStore
from lookuplab.toolgen.analysers import imports_begin, key, repository_digest


class JediAnswers(AnswerStore):
    """Key -> [names, what completing each would insert], in ``suggestions.sqlite``; one answer takes about 20 kB.

    A key covers what a judgement's does. A repository must not change while this is open.
    """

    name = "suggestions"

    def __init__(self, path: str | Path | None = None):
        super().__init__(path)
        self._digests: dict[str | Path, str] = {}

    def key(self, root: str | Path, file: str, **question: object) -> str:
        """The key of a question about an unsaved buffer that stands for ``file`` below ``root``."""
        if root not in self._digests:
            self._digests[root] = repository_digest(Path(root))
        path = (Path(root) / file).resolve()
        return key(self.name, self._digests[root], file=path.relative_to(imports_begin(path)).as_posix(), **question)
