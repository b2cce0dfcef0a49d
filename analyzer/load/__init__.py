"""RUN argument → `Run`: finds the files, in a folder, archive or log, and has each read by its parser."""

from analyzer.load.run import load_run

__all__ = ["load_run"]
