"""The sources room: documents and subscriptions from wherever people have them.

documents.py       files, folders, globs, archives, tables, standard input -> Documents with labels, errors among them
globs.py           which paths a glob stands for; kinds.py: which files are XML documents
subscriptions.py   TSV, CSV, JSON Lines, Parquet -> a table with lines, errors beside it
namespaces.py      prefixes as text, in cells and in files
archives.py        the members of .zip and .tar
compression.py     .gz, .bz2, .xz, .zst as streams
delimited.py       rows of TSV and CSV with their lines
pieces.py          a stream cut at a separator
records.py         a large XML file cut into its records; record_files.py: from beginning to end
regions.py         where to split one huge file, found by many tasks at once
"""
