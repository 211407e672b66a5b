"""What the site adds to the pages: the API and command reference, and files of the root.

No Sphinx in here, so that tests may ask what would be written.
"""
