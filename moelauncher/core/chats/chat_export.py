"""Chats as files: Markdown to read, JSON to take along.

In: a chat, or the text of a file. Out: the file's text, or a chat. JSON keeps everything, all
versions included; Markdown keeps the visible branch, and is read back by its headings. Pure;
any thread.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from moelauncher.core.chats.conversation import Conversation, Node, restored
from moelauncher.core.chats.kept_chat import KeptChat, new_chat_id
from moelauncher.core.chats.turn import Turn
from moelauncher.core.chats.turn_json import details_of, turn_from
from moelauncher.core.errors import LauncherError
from moelauncher.core.text_cleaning import display_name, writable_text
from moelauncher.core.translate import tr
from moelauncher.core.units import format_rate

FORMAT = "moelauncher-chat"
FORMAT_VERSION = 1
#: A chat of a lifetime is smaller; a larger file is something else.
LONGEST_FILE_BYTES = 256 * 2**20

_HEADING = re.compile(r"^## (User|Assistant|System)(?: \((.*)\))?\s*$")
_ESCAPED = re.compile(r"^(\\*)(## (?:User|Assistant|System)\b)", re.MULTILINE)
_UNESCAPED = re.compile(r"^\\(\\*## (?:User|Assistant|System)\b)", re.MULTILINE)
_KEY = re.compile("[0-9]{1,16}")
_BAD_IN_NAMES = re.compile(r'[\\/:*?"<>|\x00-\x1f]+')


def to_json(chat: KeptChat) -> str:
    """The whole chat as a JSON document."""
    return writable_text(json.dumps(as_document(chat), ensure_ascii=False, indent=1)) + "\n"


def as_document(chat: KeptChat) -> dict[str, object]:
    """The whole chat as JSON values; :func:`from_document` reads them."""
    talk = chat.conversation
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "title": chat.shown_title,
        "system": talk.system,
        "settings": dict(chat.settings),
        "turns": [
            {
                "key": node.key,
                "parent": node.parent,
                "role": node.turn.role,
                "text": node.turn.text,
                "reasoning": node.turn.reasoning,
                "state": node.turn.state.value,
                **details_of(node.turn),
            }
            for node in sorted(talk.nodes.values(), key=lambda n: n.key)
        ],
        "chosen": {str(parent): child for parent, child in talk.chosen.items()},
        "left_out": sorted(talk.left_out),
    }


def to_markdown(chat: KeptChat) -> str:
    """The visible branch as Markdown, the thinking left away."""
    parts = [f"# {chat.shown_title}"]
    if chat.conversation.system.strip():
        parts.append("## System\n\n" + _escaped(chat.conversation.system))
    for turn in chat.conversation.turns:
        parts.append(turn_markdown(turn))
    return writable_text("\n\n".join(parts)) + "\n"


def turn_markdown(turn: Turn) -> str:
    """One turn under its heading."""
    if turn.role == "user":
        return "## User\n\n" + _escaped(turn.text)
    details = [turn.label]
    if turn.stats is not None and turn.stats.tok_s is not None:
        details.append(format_rate(turn.stats.tok_s))
    details.append(turn.placement_text)
    told = ", ".join(detail for detail in details if detail)
    return "## Assistant" + (f" ({told})" if told else "") + "\n\n" + _escaped(turn.text)


def read_chat(name: str, data: bytes) -> KeptChat:
    """The chat in an exported file, under a new id. Raises LauncherError saying why not."""
    if len(data) > LONGEST_FILE_BYTES:
        raise _no_chat(name, tr("it is too large to be one"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_chat(name, tr("it is no text")) from error
    if text.lstrip().startswith(("{", "[")):
        return _from_json(name, text)
    return _from_markdown(name, text)


def from_document(name: str, document: object) -> KeptChat:
    """The chat that :func:`as_document` wrote, under a new id; ``name`` is what the file is
    called. Raises LauncherError saying why not.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _no_chat(name, tr("it was not exported by this program"))
    version = document.get("version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise _no_chat(name, tr("it comes from a newer version of this program"))
    turns = document.get("turns")
    nodes = [_node(item) for item in turns] if isinstance(turns, list) else []
    chosen = document.get("chosen")
    choices = {
        int(parent): child
        for parent, child in (chosen.items() if isinstance(chosen, dict) else ())
        if _KEY.fullmatch(parent) and isinstance(child, int)
    }
    left_out = document.get("left_out")
    keys = [k for k in left_out if isinstance(k, int)] if isinstance(left_out, list) else []
    system = document.get("system")
    talk = restored(
        system if isinstance(system, str) else "",
        [node for node in nodes if node is not None],
        choices,
        keys,
    ).cut()
    if not talk.nodes:
        raise _no_chat(name, tr("it holds no turns"))
    title = document.get("title")
    settings = document.get("settings")
    return KeptChat(
        new_chat_id(),
        talk,
        display_name(title) if isinstance(title, str) else "",
        settings if isinstance(settings, dict) else {},
    )


def file_name(title: str, ending: str) -> str:
    """A name for the exported file that every file system takes."""
    words = _BAD_IN_NAMES.sub(" ", display_name(title)).split()
    plain = " ".join(words).strip(" .")[:80].strip(" .")
    return (plain or "chat") + ending


def _from_json(name: str, text: str) -> KeptChat:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_chat(name, str(error)) from error
    return from_document(name, document)


def _node(item: object) -> Node | None:
    if not isinstance(item, dict):
        return None
    key, parent, role = item.get("key"), item.get("parent"), item.get("role")
    text, reasoning = item.get("text"), item.get("reasoning", "")
    if type(key) is not int or type(parent) is not int or not 0 < key < 2**53:
        return None
    if role not in ("user", "assistant") or not isinstance(text, str):
        return None
    state = item.get("state")
    turn = turn_from(
        role,
        text,
        reasoning if isinstance(reasoning, str) else "",
        state if isinstance(state, str) else "",
        item,
    )
    return Node(key, parent, turn)


def _from_markdown(name: str, text: str) -> KeptChat:
    title, system = "", ""
    talk = Conversation()
    nodes: list[Node] = []
    for role, label, body in _sections(text):
        if role == "":
            title = body.lstrip("#").strip() if body.startswith("#") else ""
        elif role == "System":
            system = body
        elif body.strip() or role == "Assistant":
            kind = role.lower()
            if nodes and nodes[-1].turn.role == kind:
                joined = replace(nodes[-1].turn, text=f"{nodes[-1].turn.text}\n\n{body}")
                nodes[-1] = replace(nodes[-1], turn=joined)
                continue
            turn = Turn(kind, body, label=label.partition(",")[0])
            nodes.append(Node(len(nodes) + 1, len(nodes), turn))
    talk = restored(system, nodes)
    if not talk.nodes:
        raise _no_chat(name, tr("it has no heading “## User”"))
    return KeptChat(new_chat_id(), talk, display_name(title) or Path(name).stem)


def _sections(text: str) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, list[str]]] = [("", "", [])]
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _HEADING.match(line)
        if match:
            found.append((match[1], match[2] or "", []))
        else:
            found[-1][2].append(line)
    return [
        (role, label, _UNESCAPED.sub(r"\1", "\n".join(lines).strip("\n")))
        for role, label, lines in found
    ]


def _escaped(text: str) -> str:
    return _ESCAPED.sub(r"\\\1\2", text)


def _no_chat(name: str, reason: str) -> LauncherError:
    return LauncherError(
        tr("{name} is no chat: {reason}.").format(name=name, reason=reason),
        tr("Chats that this program exported can be imported: Markdown or JSON."),
    )
