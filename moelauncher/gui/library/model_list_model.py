"""The catalog as a Qt list: entries in, roles for the delegate and for assistive tools out.

The model keeps its rows sorted (usable ones by name, then those with a problem), so the
proxy in front of it only filters, in C++. GUI thread only.
"""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRegularExpression,
    QSortFilterProxyModel,
    Qt,
    Signal,
)

from moelauncher.core.library.catalog_entry import CatalogEntry
from moelauncher.core.library.model_groups import group_name, quant_label
from moelauncher.core.speed.best_setting import BestSetting
from moelauncher.core.text_cleaning import display_name
from moelauncher.core.units import format_bytes, format_parameters
from moelauncher.gui.library.model_row import ModelRow, is_listed, row_of_entry

Index = QModelIndex | QPersistentModelIndex


class ModelListModel(QAbstractListModel):
    """One row an entry.

    Signals:
        told(): what some rows say has changed, but neither name nor height. Qt's own signal for
            changed data would measure every row of the view again.
    """

    told = Signal()

    ROW = Qt.ItemDataRole.UserRole
    SEARCH = Qt.ItemDataRole.UserRole + 1

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ModelRow] = []
        self._by_path: dict[Path, ModelRow] = {}
        self._verdicts: dict[Path, tuple[str, str]] = {}
        self._best: dict[Path, BestSetting] = {}

    @property
    def entries(self) -> list[CatalogEntry]:
        """What is listed, in the order of the rows."""
        return [row.entry for row in self._rows]

    def row_of(self, path: Path) -> int | None:
        """Which row shows the model at ``path``."""
        row = self._by_path.get(path)
        return None if row is None else self._place_for(row)

    def set_entries(self, entries: Iterable[CatalogEntry]) -> None:
        """Replace all rows; verdicts of entries that stay are kept."""
        self.beginResetModel()
        listed = {entry.path: entry for entry in entries if is_listed(entry)}
        self._verdicts = {p: v for p, v in self._verdicts.items() if p in listed}
        self._rows = sorted(map(self._row_for, listed.values()), key=lambda row: row.sort_key)
        self._by_path = {row.entry.path: row for row in self._rows}
        self.endResetModel()

    def merge(self, rows: Iterable[ModelRow]) -> None:
        """Add or renew many rows at once; verdicts are kept. Unlisted ones are left out."""
        changed = {
            row.entry.path: self._judged(row)
            for row in rows
            if is_listed(row.entry) and not self._shows(row.entry)
        }
        if not changed:
            return
        self.beginResetModel()
        self._by_path.update(changed)
        # Sorted runs, whose keys were worked out elsewhere.
        self._rows = sorted(self._by_path.values(), key=lambda row: row.sort_key)
        self.endResetModel()

    def upsert(self, entry: CatalogEntry) -> None:
        """Add a row, or show what is now known of its file."""
        old = self.row_of(entry.path)
        if not is_listed(entry):
            self.remove(entry.path)
            return
        row = self._row_for(entry)
        if old is None:
            at = self._place_for(row)
            self.beginInsertRows(QModelIndex(), at, at)
            self._rows.insert(at, row)
            self._by_path[entry.path] = row
            self.endInsertRows()
            return
        if row == self._rows[old]:
            return
        rest = self._rows[:old] + self._rows[old + 1 :]
        at = bisect_left(rest, row.sort_key, key=lambda other: other.sort_key)
        if at != old:
            # Qt counts the target among the rows before the move.
            target = at if at < old else at + 1
            self.beginMoveRows(QModelIndex(), old, old, QModelIndex(), target)
            self._rows = rest
            self._rows.insert(at, row)
            self._by_path[entry.path] = row
            self.endMoveRows()
        self._rows[at] = row
        self._by_path[entry.path] = row
        self.dataChanged.emit(self.index(at), self.index(at))

    def remove(self, path: Path) -> None:
        """Drop the row of ``path``, where there is one."""
        at = self.row_of(path)
        self._verdicts.pop(path, None)
        if at is not None:
            self.beginRemoveRows(QModelIndex(), at, at)
            del self._rows[at]
            del self._by_path[path]
            self.endRemoveRows()

    def set_verdict(self, path: Path, text: str, level: str) -> None:
        """Say how a model would run; kept also for a row that is still to come."""
        self._verdicts[path] = (text, level)
        at = self.row_of(path)
        if at is not None:
            self._rows[at] = replace(self._rows[at], verdict=text, level=level)
            self._by_path[path] = self._rows[at]
            self.told.emit()

    def set_best(self, path: Path, best: BestSetting | None) -> None:
        """The best setting measured of a model; kept also for a row that is still to come."""
        if best is None:
            self._best.pop(path, None)
        else:
            self._best[path] = best
        if self.row_of(path) is not None:
            self.told.emit()

    def _row_for(self, entry: CatalogEntry) -> ModelRow:
        verdict, _ = self._verdicts.get(entry.path, ("", ""))
        known = self._by_path.get(entry.path)
        if known is not None and known.entry == entry and known.verdict == verdict:
            # With the keys that it has worked out: most of a long list stays as it was.
            return known
        return self._judged(row_of_entry(entry))

    def _shows(self, entry: CatalogEntry) -> bool:
        known = self._by_path.get(entry.path)
        return known is not None and (known.entry is entry or known.entry == entry)

    def _judged(self, row: ModelRow) -> ModelRow:
        told = self._verdicts.get(row.entry.path)
        return row if told is None else replace(row, verdict=told[0], level=told[1])

    def _place_for(self, row: ModelRow) -> int:
        return bisect_left(self._rows, row.sort_key, key=lambda other: other.sort_key)

    def place_in_group(self, at: int) -> str:
        """Of all rows: "alone", "first" of several quantisations, or "later"."""
        rows = self._rows
        group = rows[at].group
        if not group:
            return "alone"
        if at and rows[at - 1].group == group:
            return "later"
        return "first" if at + 1 < len(rows) and rows[at + 1].group == group else "alone"

    def facts_line(self, entry: CatalogEntry) -> str:
        """The second line: storage, files and experts, or what is wrong with the file."""
        if entry.problem:
            return entry.problem
        parts = [entry.quant or entry.arch]
        if len(entry.files) > 1:
            parts.append(self.tr("{n} files").format(n=len(entry.files)))
        if entry.n_expert:
            parts.append(self._experts(entry))
        elif entry.n_expert == 0:
            parts.append(self.tr("dense"))
        return " · ".join(part for part in parts if part)

    def group_lines(self, row: ModelRow) -> tuple[str, str]:
        """Over the quantisations of one model: its name, and what they all share."""
        entry = row.entry
        count = sum(other.group == row.group for other in self._rows)
        parts = [self.tr("{n} quantisations").format(n=count)]
        parts.append(self._experts(entry) if entry.n_expert else self.tr("dense"))
        return group_name(entry), " · ".join(parts)

    def quant_text(self, entry: CatalogEntry) -> str:
        """What tells a row from the others of its group: the file too, where labels are alike."""
        label = quant_label(entry)
        at = self.row_of(entry.path)
        if not label or at is None:
            return label or entry.path.stem
        # Of one size, or nearly so: copies lie beside each other.
        near = self._rows[max(0, at - 1) : at] + self._rows[at + 1 : at + 2]
        group = self._rows[at].group
        if any(row.group == group and quant_label(row.entry) == label for row in near):
            return f"{label} · {display_name(entry.path.stem)}"
        return label

    def verdict_line(self, row: ModelRow) -> tuple[str, str]:
        """The third line and its level: the best measured setting as long as nothing speaks
        against it, else the verdict, else the size in parameters."""
        if row.entry.role == "download":
            return self.tr("not a model yet"), "warn"
        if row.entry.problem:
            unread = row.entry.role in ("unknown", "folder")
            return (self.tr("cannot be read") if unread else self.tr("cannot be used")), "bad"
        best = self._best.get(row.entry.path)
        if best is not None and row.level in ("", "good"):
            return best.text, "good"
        if row.verdict:
            return row.verdict, row.level
        if row.entry.n_params is None:
            return "", ""
        total = format_parameters(row.entry.n_params)
        active = row.entry.n_active_params
        if active is None or not row.entry.n_expert:
            return self.tr("{n} parameters").format(n=total), ""
        return (
            self.tr("{n} parameters, {active} active").format(
                n=total, active=format_parameters(active)
            ),
            "",
        )

    def size_text(self, entry: CatalogEntry) -> str:
        """The size of all files; "" where unknown."""
        return "" if entry.size_bytes is None else format_bytes(entry.size_bytes)

    def _experts(self, entry: CatalogEntry) -> str:
        if entry.n_expert_used is None:
            return self.tr("MoE {n} experts").format(n=entry.n_expert)
        if len(entry.files) > 1:
            # Beside the number of files there is no room for the word.
            return self.tr("MoE {n}, {used} used").format(
                n=entry.n_expert, used=entry.n_expert_used
            )
        return self.tr("MoE {n} experts, {used} used").format(
            n=entry.n_expert, used=entry.n_expert_used
        )

    def _lines(self, row: ModelRow) -> list[str]:
        entry = row.entry
        named = " ".join(part for part in (entry.name, self.size_text(entry)) if part)
        return [named, self.facts_line(entry), self.verdict_line(row)[0]]

    def _tool_tip(self, row: ModelRow) -> str:
        lines = [*self._lines(row), self._best_note(row), row.entry.hint, str(row.entry.path)]
        # Names come from files; as a tooltip unescaped text might be taken for HTML.
        return "<qt>" + "<br>".join(html.escape(line) for line in lines if line) + "</qt>"

    def _best_note(self, row: ModelRow) -> str:
        """Where the rate in the row comes from, and the verdict that it stands in front of."""
        best = self._best.get(row.entry.path)
        if best is None:
            return ""
        how = self.tr("best speed that Tune measured here")
        if not best.tuned:
            how = self.tr("fastest reply in a chat here")
        return " · ".join(text for text in (how, row.verdict) if text)

    # Qt's own

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or not 0 <= index.row() < len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return row.entry.name
        if role == self.ROW:
            return row
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tool_tip(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(line for line in self._lines(row) if line)
        if role == self.SEARCH:
            entry = row.entry
            return f"{entry.name} {entry.path.name} {entry.arch} {self.facts_line(entry)}"
        return None


class ModelFilter(QSortFilterProxyModel):
    """Rows that hold every word of the filter, in any order and case."""

    def __init__(self, source: ModelListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSourceModel(source)
        self.setFilterRole(ModelListModel.SEARCH)

    def set_words(self, text: str) -> None:
        """Show rows that hold all the words in ``text``."""
        words = "".join(f"(?=.*{QRegularExpression.escape(word)})" for word in text.split())
        options = (
            QRegularExpression.PatternOption.CaseInsensitiveOption
            | QRegularExpression.PatternOption.DotMatchesEverythingOption
            | QRegularExpression.PatternOption.UseUnicodePropertiesOption
        )
        self.setFilterRegularExpression(QRegularExpression("^" + words, options))
