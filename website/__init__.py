"""The site of the pages: what it consists of, in which order, and what is written for it alone.

`python -m website` lays the pages out in `build/pages`; properdocs makes the site of them.
"""
