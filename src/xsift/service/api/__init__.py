"""HTTP. `routes.py` is the table of what there is; `application.py` puts it together; a file for each kind of
thing.
"""
