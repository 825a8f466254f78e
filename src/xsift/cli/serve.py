"""`xsift serve`: publish, subscribe, be told; by HTTP."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from xsift.cli import EXIT_OK
from xsift.errors import XsiftError

EPILOG = """\
keys:
  xsift serve keys add OWNER --role admin|subscribe|publish [--role …] [--name TEXT]   prints the key, this once
  xsift serve keys list
  xsift serve keys revoke ID

Without any key, everybody on this machine may do everything, and nobody else anything.
docs/serve.md tells all of it, from the first document to the last setting.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "action", nargs="*", metavar="keys …", help="make, list or revoke API keys instead of serving"
    )
    parser.add_argument("--config", metavar="FILE", help="settings (TOML); options on the command line go before it")
    parser.add_argument("--host", help="where to listen; default: 127.0.0.1")
    parser.add_argument("--port", type=int, help="default: 8080; 0 for any that is free")
    parser.add_argument("--data", metavar="FOLDER", help="where everything is kept; default: xsift-data")
    parser.add_argument("--database", metavar="URL", help="postgresql://… instead of SQLite in the data folder")
    parser.add_argument("--folder", metavar="FOLDER", help="publish the files that are put into this folder")
    parser.add_argument("--log-format", choices=["text", "json"], help="default: text")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], help="default: info")
    parser.add_argument("--certificate", metavar="FILE", help="serve https with this certificate")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key")
    parser.add_argument("--insecure", action="store_true", default=None, help="serve others although there is no key")
    parser.add_argument("--role", action="append", default=[], help="of a new key: admin, subscribe, publish")
    parser.add_argument("--name", default="", help="of a new key: what it is for")


def run(arguments: argparse.Namespace) -> int:
    """Serves, or works on keys; returns the exit code."""
    try:
        from xsift.service.server import run as serve  # with all that the service needs, so that it is missed here
        from xsift.service.settings import read_settings
    except ModuleNotFoundError as error:
        raise XsiftError(
            "not-installed", f"the service needs {error.name}", hint="pip install 'xsift[serve]'"
        ) from error
    settings = read_settings(
        arguments.config,
        host=arguments.host,
        port=arguments.port,
        data=arguments.data,
        database=arguments.database,
        insecure=arguments.insecure,
        log_format=arguments.log_format,
        log_level=arguments.log_level,
        folder__path=arguments.folder,
        tls__certificate=arguments.certificate,
        tls__key=arguments.key,
    )
    if arguments.action:
        return _keys(arguments, settings)
    return serve(settings)


def _keys(arguments: argparse.Namespace, settings: Any) -> int:
    from xsift.service.keys_tool import add_key, list_keys, revoke_key

    match arguments.action:
        case ["keys", "add", owner]:
            id, key = add_key(settings, owner, arguments.role, arguments.name)
            print(key)
            print(f"This is key {id} of {owner}. It is shown this once: keep it.", file=sys.stderr)
        case ["keys", "list"]:
            for line in list_keys(settings):
                print(line)
        case ["keys", "revoke", id]:
            revoke_key(settings, id)
        case _:
            raise XsiftError(
                "bad-action", f"`serve {' '.join(arguments.action)}` is not known", hint="see `xsift serve --help`"
            )
    return EXIT_OK
