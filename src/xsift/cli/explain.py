"""`xsift explain`: how is a subscription evaluated; why did it match a document, or where did it stop?"""

from __future__ import annotations

import argparse

from xsift.cli import EXIT_BROKEN, EXIT_CODES, EXIT_NOTHING, EXIT_OK
from xsift.cli.common import add_subscription_options, encoding_of, load_matcher, say, told
from xsift.errors import DocumentError, XsiftError
from xsift.matching import Matcher
from xsift.matching.display import printable
from xsift.sources.documents import Found, read_documents


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXIT_CODES
    add_subscription_options(parser)
    parser.add_argument("--id", required=True, help="the subscription to explain")
    parser.add_argument("--record", metavar="NAME", help="cut files into elements of this name, a document each")
    parser.add_argument("--encoding", help="of the document, whatever it declares")
    parser.add_argument(
        "document", nargs="?", metavar="DOCUMENT", help="the document; without one, the subscription alone"
    )


def run(arguments: argparse.Namespace) -> int:
    """Explains; returns the exit code."""
    encoding = encoding_of(arguments)
    loaded = load_matcher(arguments)
    matcher = loaded.matcher
    report = matcher.report(arguments.id)
    if arguments.document is None:
        print(report)
        return EXIT_BROKEN if loaded.failed else EXIT_OK
    documents = read_documents(
        [arguments.document], encoding=encoding, record=arguments.record, limits=matcher.limits
    )
    outcomes = {_explain(matcher, arguments, document) for document in documents}
    return EXIT_BROKEN if loaded.failed or EXIT_BROKEN in outcomes else min(outcomes, default=EXIT_NOTHING)


def _explain(matcher: Matcher, arguments: argparse.Namespace, document: Found) -> int:
    try:
        if isinstance(document, DocumentError):
            raise document
        explanation = matcher.explain(document, arguments.id)
    except XsiftError as error:
        say(told(document.label or "", error))
        return EXIT_BROKEN
    if document.label != arguments.document:  # one of several
        print(printable(f"{document.label}:"))
    print(explanation)
    return EXIT_OK if explanation.matched else EXIT_NOTHING
