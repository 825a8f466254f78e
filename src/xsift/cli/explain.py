"""`xsift explain`: how is a subscription evaluated; why did it match a document, or where did it stop?"""

from __future__ import annotations

import argparse

from xsift.cli import EXIT_NOTHING, EXIT_OK
from xsift.cli.common import add_subscription_options, load_matcher
from xsift.errors import DocumentError
from xsift.sources.files import read_documents


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.epilog = "exit code: 0 it matches, or no document was given; 1 it does not; 2 wrong use"
    add_subscription_options(parser)
    parser.add_argument("--id", required=True, help="the subscription to explain")
    parser.add_argument(
        "document", nargs="?", metavar="DOCUMENT", help="the document; without one, the subscription alone"
    )


def run(arguments: argparse.Namespace) -> int:
    """Explains; returns the exit code."""
    arguments.skip_errors = True
    matcher = load_matcher(arguments)
    if arguments.document is None:
        print(matcher.report(arguments.id))
        return EXIT_OK
    document = next(read_documents([arguments.document]))
    if isinstance(document, DocumentError):
        raise document
    explanation = matcher.explain(document, arguments.id)
    print(explanation)
    return EXIT_OK if explanation.matched else EXIT_NOTHING
