"""Names spelled in tokens, as a prefix tree (ToolGen, Algorithm 3).

A node is a number, the root is 0. Two kinds of nodes end a name: at a *terminal* node it is spelled and may go on into
a longer name; at a *closed* node its last token holds a character behind the name as well, as in ``t(``.
"""

from collections.abc import Iterable, Sequence

import torch

ROOT = 0


class TokenTrie:
    """A prefix tree over token ids. ``names`` end in terminal nodes, ``closed`` in closed ones."""

    def __init__(
        self, names: Iterable[Sequence[int]], closed: Iterable[Sequence[int]] = ()
    ) -> None:
        self._children: list[dict[int, int]] = [{}]
        self._allowed: dict[int, torch.Tensor] = {}
        self._terminal = {self._insert(name) for name in names}
        self._closed = {self._insert(name) for name in closed}

    def _insert(self, tokens: Sequence[int]) -> int:
        node = ROOT
        for token in tokens:
            if token not in self._children[node]:
                self._children[node][token] = len(self._children)
                self._children.append({})
            node = self._children[node][token]
        return node

    def __len__(self) -> int:
        """How many nodes there are, the root among them."""
        return len(self._children)

    def child(self, node: int, token: int) -> int | None:
        """Where this token leads, None where it leads out of the tree."""
        return self._children[node].get(token)

    def terminal(self, node: int) -> bool:
        """Whether the tokens up to here spell a name."""
        return node in self._terminal

    def closed(self, node: int) -> bool:
        """Whether the tokens up to here spell a name and a character that ends it."""
        return node in self._closed

    def allowed(self, node: int) -> torch.Tensor:
        """Token ids (children,) of the children: an index to scatter with, kept once it was asked for.

        Ids and not a mask over the vocabulary: a node has few children, a vocabulary 50,000 tokens and more.
        """
        if node not in self._allowed:
            self._allowed[node] = torch.tensor(sorted(self._children[node]), dtype=torch.long)
        return self._allowed[node]

    def forced(self, node: int) -> tuple[int, ...]:
        """The tokens that must follow: down single children, up to the first node that ends a name or branches."""
        chain = []
        while len(self._children[node]) == 1 and node not in self._terminal:
            ((token, node),) = self._children[node].items()
            chain.append(token)
        return tuple(chain)
