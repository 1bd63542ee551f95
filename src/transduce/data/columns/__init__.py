"""What one side of an example is: tokens, a label. A task has a column in and a column out; one kind a file."""

from transduce.data.columns.protocols import Column, Columns, ColumnSpec, Specs

__all__ = ["Column", "ColumnSpec", "Columns", "Specs"]
