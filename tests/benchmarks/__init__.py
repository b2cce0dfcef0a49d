"""How fast a report is, beside what others need for the same files. Run by `make bench`."""
