"""A conversation as a tree of frozen turns: turns in, chat messages for the engine out.

Whoever edits an earlier message or asks for another reply gets a branch; all versions are
kept, and one branch is visible. Every function answers a new :class:`Conversation`; nothing
is changed in place, so the window can keep an old one and go back to it (undo). User and
reply alternate along every path from the root. Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

from moelauncher.core.chats.turn import Turn, TurnState
from moelauncher.core.engine_protocol import ChatMessage, GenerationStats, Sampling
from moelauncher.core.errors import LauncherError

#: The parent of a chat's first turns.
ROOT = 0


@dataclass(frozen=True)
class Node:
    """A turn with its place in the tree. ``key`` is never used twice in one chat."""

    key: int
    parent: int
    turn: Turn


@dataclass(frozen=True)
class ShownTurn:
    """A turn of the visible branch: version ``version`` (from 1) of ``n_versions``."""

    key: int
    turn: Turn
    version: int = 1
    n_versions: int = 1
    left_out: bool = False  # the user took it out of what the model is given
    unanswered: bool = False  # a question that nothing follows


@dataclass(frozen=True)
class Conversation:
    """All turns, which of them are visible, and the system prompt (empty: none)."""

    system: str = ""
    nodes: Mapping[int, Node] = field(default_factory=lambda: MappingProxyType({}))
    #: For a turn with several children: the visible one.
    chosen: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    next_key: int = 1
    left_out: frozenset[int] = frozenset()

    # What is visible

    @property
    def path(self) -> tuple[Node, ...]:
        """The visible branch, oldest first."""
        return tuple(self._walk())

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the visible branch, oldest first."""
        return tuple(node.turn for node in self._walk())

    def shown(self) -> tuple[ShownTurn, ...]:
        """The visible branch with the versions of each turn."""
        siblings: dict[int, list[int]] = {}
        for node in self.nodes.values():
            siblings.setdefault(node.parent, []).append(node.key)
        found = []
        for node in self._walk():
            versions = sorted(siblings[node.parent])
            found.append(
                ShownTurn(
                    node.key,
                    node.turn,
                    versions.index(node.key) + 1,
                    len(versions),
                    node.key in self.left_out,
                    node.key == self._last_key and node.turn.role == "user",
                )
            )
        return tuple(found)

    @property
    def streaming(self) -> bool:
        """Whether the last turn is a reply that is still being written."""
        last = self._last
        return last is not None and last.turn.state is TurnState.STREAMING

    @property
    def last_reply(self) -> Turn | None:
        """The newest visible reply, finished or not; None before the first."""
        return next((turn for turn in reversed(self.turns) if turn.role == "assistant"), None)

    def versions(self, key: int) -> tuple[int, ...]:
        """The keys of all versions of turn ``key``, oldest first, itself included."""
        return self._children(self.nodes[key].parent)

    def beneath(self, key: int) -> frozenset[int]:
        """Turn ``key`` and everything that follows it, in all branches."""
        found = {key}
        # A child is always younger than its parent.
        for here in sorted(self.nodes):
            if self.nodes[here].parent in found:
                found.add(here)
        return frozenset(found)

    # Streaming

    def ask(self, text: str) -> Conversation:
        """Add the user's turn. Raises ValueError for blank text or while a reply streams."""
        self._refuse_streaming()
        if not text.strip():
            raise ValueError("a user's turn has text")
        last = self._last
        if last is not None and last.turn.role == "user":
            # Nobody answered: both are one question, as templates want it.
            joined = replace(last.turn, text=f"{last.turn.text}\n\n{text}")
            return self._put(replace(last, turn=joined)).take_in([last.key])
        return self._add(last.key if last else ROOT, Turn("user", text))

    def begin_reply(self, label: str = "", sampling: Sampling | None = None) -> Conversation:
        """Add an empty reply, to be filled by :meth:`append`. ``label``: who answers."""
        self._refuse_streaming()
        last = self._last
        if last is None or last.turn.role != "user":
            raise ValueError("a reply follows a question")
        turn = Turn("assistant", "", label=label, state=TurnState.STREAMING, sampling=sampling)
        return self.take_in([last.key])._add(last.key, turn)

    def append(
        self, text: str, reasoning: str = "", thought_s: float | None = None
    ) -> Conversation:
        """Add to the reply that is being written; ``thought_s``: how long it thinks by now."""
        node = self._open_reply()
        turn = node.turn
        grown = replace(
            turn,
            text=turn.text + text,
            reasoning=turn.reasoning + reasoning,
            thought_s=turn.thought_s if thought_s is None else thought_s,
        )
        return self._put(replace(node, turn=grown))

    def finish(
        self,
        stats: GenerationStats,
        placement_text: str = "",
        thought_s: float | None = None,
    ) -> Conversation:
        """Close the reply that is being written; a stopped one keeps what it has."""
        return self._close(
            state=TurnState.DONE,
            stats=stats,
            placement_text=placement_text,
            thought_s=thought_s,
            error=None,
        )

    def fail(self, error: LauncherError) -> Conversation:
        """Close the reply with the reason why it could not go on; its text is kept."""
        return self._close(state=TurnState.FAILED, error=error)

    def cut(self) -> Conversation:
        """Mark replies that nobody writes any more: the program ended in mid-reply."""
        open_ones = [n for n in self.nodes.values() if n.turn.state is TurnState.STREAMING]
        result = self
        for node in open_ones:
            result = result._put(replace(node, turn=replace(node.turn, state=TurnState.CUT)))
        return result

    # Branches

    def edit(self, key: int, text: str) -> Conversation:
        """A new version of the user's turn ``key``; the old one and what followed stay."""
        self._refuse_streaming()
        node = self.nodes[key]
        if node.turn.role != "user" or not text.strip():
            raise ValueError("only a user's turn is edited, and it has text")
        return self._add(node.parent, Turn("user", text))

    def regenerate(
        self, key: int, label: str = "", sampling: Sampling | None = None
    ) -> Conversation:
        """Open another reply beside reply ``key``, which stays as a version.

        The question is given to the model even where it was left out before.
        """
        self._refuse_streaming()
        node = self.nodes[key]
        if node.turn.role != "assistant":
            raise ValueError("only a reply is made again")
        turn = Turn("assistant", "", label=label, state=TurnState.STREAMING, sampling=sampling)
        return self.take_in([node.parent])._add(node.parent, turn)

    def go_on(self) -> Conversation:
        """Open the last reply again, to be written on."""
        self._refuse_streaming()
        last = self._last
        if last is None or not last.turn.can_go_on:
            raise ValueError("the last turn is no reply that was cut off")
        # The numbers so far are not those of what it will be.
        turn = replace(last.turn, state=TurnState.STREAMING, error=None, stats=None)
        return self._put(replace(last, turn=turn)).take_in([last.parent, last.key])

    def choose(self, key: int) -> Conversation:
        """Make version ``key`` of its turn the visible one."""
        self._refuse_streaming()
        return replace(self, chosen=_with(self.chosen, self.nodes[key].parent, key))

    def delete(self, key: int) -> Conversation:
        """Without turn ``key`` and all that follows it; another version becomes visible."""
        self._refuse_streaming()
        gone = self.beneath(key)
        parent = self.nodes[key].parent
        versions = self.versions(key)
        at = versions.index(key)
        rest = [version for version in versions if version != key]
        chosen = {p: c for p, c in self.chosen.items() if p not in gone and c not in gone}
        if rest:
            chosen[parent] = rest[min(at, len(rest) - 1)]
        return replace(
            self,
            nodes=MappingProxyType({k: n for k, n in self.nodes.items() if k not in gone}),
            chosen=MappingProxyType(chosen),
            left_out=self.left_out - gone,
        )

    def undelete(self, before: Conversation, key: int) -> Conversation:
        """Bring back what ``before.delete(key)`` took away, whatever was said since."""
        self._refuse_streaming()
        back = {k: before.nodes[k] for k in before.beneath(key)}
        parent = before.nodes[key].parent
        if parent != ROOT and parent not in self.nodes:
            return self
        within = {p: c for p, c in before.chosen.items() if p in back}
        return replace(
            self,
            nodes=MappingProxyType({**self.nodes, **back}),
            chosen=MappingProxyType({**self.chosen, **within, parent: key}),
            left_out=self.left_out | (before.left_out & frozenset(back)),
        )

    def leave_out(self, keys: Iterable[int]) -> Conversation:
        """Give the model these turns no longer; they stay to be read."""
        return replace(self, left_out=self.left_out | frozenset(keys) & frozenset(self.nodes))

    def take_in(self, keys: Iterable[int]) -> Conversation:
        """Give the model these turns again."""
        left_out = self.left_out - frozenset(keys)
        return self if left_out == self.left_out else replace(self, left_out=left_out)

    # What the engine is given

    def messages(self) -> tuple[ChatMessage, ...]:
        """The system prompt, then the visible turns, alternating.

        Replies without any text (failed, stopped at once, still to come) and turns that
        were left out are no messages. The user's turns that then stand side by side are
        joined by a blank line, since many templates refuse two in a row; so nothing that
        was asked gets lost. Reasoning is handed on apart from the answer: whether it is
        seen again is the template's choice.
        """
        messages = [ChatMessage("system", self.system)] if self.system.strip() else []
        for node in self._walk():
            turn = node.turn
            if node.key in self.left_out:
                continue
            if turn.role == "assistant" and not turn.text.strip():
                continue
            if messages and turn.role == messages[-1].role:
                joined = f"{messages[-1].content}\n\n{turn.text}"
                messages[-1] = ChatMessage(turn.role, joined, messages[-1].reasoning)
                continue
            messages.append(ChatMessage(turn.role, turn.text, turn.reasoning))
        return tuple(messages)

    def messages_to_go_on(self) -> tuple[ChatMessage, ...]:
        """As :meth:`messages`, and last the reply that is to be gone on with, as far as it is."""
        last = self._open_reply()
        before = replace(self, left_out=self.left_out | {last.key})
        begun = ChatMessage("assistant", last.turn.text, last.turn.reasoning)
        return (*before.messages(), begun)

    # Parts

    @property
    def _last(self) -> Node | None:
        return self.nodes.get(self._last_key)

    @cached_property
    def _last_key(self) -> int:
        last = ROOT
        for node in self._walk():
            last = node.key
        return last

    def _walk(self) -> Iterator[Node]:
        newest: dict[int, int] = {}
        for key, node in self.nodes.items():
            newest[node.parent] = max(newest.get(node.parent, 0), key)
        here = ROOT
        while here in newest:
            here = self.chosen.get(here, newest[here])
            yield self.nodes[here]

    def _children(self, key: int) -> tuple[int, ...]:
        return tuple(sorted(node.key for node in self.nodes.values() if node.parent == key))

    def _refuse_streaming(self) -> None:
        if self.streaming:
            raise ValueError("a reply is still being written")

    def _open_reply(self) -> Node:
        last = self._last
        if last is None or last.turn.state is not TurnState.STREAMING:
            raise ValueError("no reply is being written")
        return last

    def _close(self, **changes: object) -> Conversation:
        node = self._open_reply()
        return self._put(replace(node, turn=replace(node.turn, **changes)))  # type: ignore[arg-type]

    def _add(self, parent: int, turn: Turn) -> Conversation:
        key = self.next_key
        return replace(
            self,
            nodes=MappingProxyType({**self.nodes, key: Node(key, parent, turn)}),
            chosen=_with(self.chosen, parent, key),
            next_key=key + 1,
        )

    def _put(self, node: Node) -> Conversation:
        changed = replace(self, nodes=MappingProxyType({**self.nodes, node.key: node}))
        # Only a turn's content is another: a long chat is not walked at every streamed word.
        changed.__dict__["_last_key"] = self._last_key
        return changed


def _with(chosen: Mapping[int, int], parent: int, key: int) -> Mapping[int, int]:
    return MappingProxyType({**chosen, parent: key})


def restored(
    system: str,
    nodes: Iterable[Node],
    chosen: Mapping[int, int] | None = None,
    left_out: Iterable[int] = (),
) -> Conversation:
    """A conversation from stored parts; what does not fit into a valid tree is left away.

    Raises nothing: a damaged row costs its own branch, never the chat.
    """
    kept: dict[int, Node] = {}
    for node in sorted(nodes, key=lambda n: n.key):
        # A child is always younger than its parent, so this also refuses circles.
        above = kept.get(node.parent)
        role = node.turn.role
        fits = (
            role == "user"
            if node.parent == ROOT
            else above is not None and ({above.turn.role, role} == {"user", "assistant"})
        )
        if node.key > node.parent >= ROOT and node.key not in kept and fits:
            kept[node.key] = node
    visible = {
        parent: child
        for parent, child in (chosen or {}).items()
        if child in kept and kept[child].parent == parent
    }
    return Conversation(
        system,
        MappingProxyType(kept),
        MappingProxyType(visible),
        max(kept, default=0) + 1,
        frozenset(left_out) & frozenset(kept),
    )
