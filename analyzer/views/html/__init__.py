"""Pages for a browser: one self-contained file each, that loads nothing and runs nothing but its own script."""
