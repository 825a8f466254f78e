"""The sources room: documents and subscriptions from files, folders, archives and records of big files."""
