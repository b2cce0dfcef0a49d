"""One module per artifact format; each `parse(text, source)` turns text into frozen records and runs nothing."""
