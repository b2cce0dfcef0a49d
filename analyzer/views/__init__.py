"""How results look: one rich renderable per result, and one JSON encoder for all of them.

Views only arrange facts. What comes from artifacts is text: never markup, never a terminal escape.
"""
