"""An S3 server for tests (moto), one request at a time: `python object_store.py PORT`.

moto looks whether there is an object, and then puts it: of two conditional puts that come at once both succeed, which
S3 promises not to do, and on which the commits of tables depend.
"""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
