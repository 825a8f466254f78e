# ruff: noqa: E501 (a rule is a line)
"""Invoices, and rules about them: documents of about 8 KB with three namespaces, and subscriptions `context[not(test)]` in the style
of Schematron rule sets: totals, code lists, mandatory parts, sums."""

from __future__ import annotations

import random

NAMESPACES = {
    "inv": "urn:example:invoice",
    "agg": "urn:example:aggregates",
    "bas": "urn:example:basics",
}
CURRENCIES = (
    "AED AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF ILS INR JPY KRW MXN MYR NOK NZD PLN RON SEK SGD THB TRY USD ZAR"
)
COUNTRIES = "AT BE BG CH CY CZ DE DK EE ES FI FR GB GR HR HU IE IS IT LI LT LU LV MT NL NO PL PT RO SE SI SK"
UNITS = "C62 DAY EA GRM H87 HAR HUR KGM KMT KTM LTR MTK MTQ MTR NAR P1 SET TNE XBX XPK"
CATEGORIES = "AE E G K L M O S Z"

SCHEME, UNIT = ' schemeID="0088"', ' unitCode="C62"'

BASICS = {  # context -> what it has, or may have
    "inv:Invoice": [
        "ID",
        "IssueDate",
        "DueDate",
        "InvoiceTypeCode",
        "Note",
        "DocumentCurrencyCode",
        "BuyerReference",
    ],
    "agg:Party": ["Name", "CompanyID", "EndpointID", "Telephone"],
    "agg:PostalAddress": ["StreetName", "CityName", "PostalZone", "CountryCode"],
    "agg:PaymentMeans": ["PaymentMeansCode", "PaymentID", "AccountID"],
    "agg:TaxTotal": ["TaxAmount"],
    "agg:TaxSubtotal": ["TaxableAmount", "TaxAmount", "CategoryCode", "Percent"],
    "agg:MonetaryTotal": ["LineExtensionAmount", "TaxExclusiveAmount", "TaxInclusiveAmount", "PayableAmount"],
    "agg:InvoiceLine": ["ID", "InvoicedQuantity", "LineExtensionAmount", "Note"],
    "agg:Item": ["Name", "Description", "SellersID", "CategoryCode", "Percent"],
    "agg:Price": ["PriceAmount", "BaseQuantity"],
    "agg:AllowanceCharge": ["ChargeIndicator", "ReasonCode", "Amount"],
    "agg:Delivery": ["ActualDeliveryDate", "LocationID"],
}
PARTS = {
    "inv:Invoice": [
        "SupplierParty",
        "CustomerParty",
        "PaymentMeans",
        "TaxTotal",
        "MonetaryTotal",
        "InvoiceLine",
        "Delivery",
    ],
    "agg:SupplierParty": ["Party"],
    "agg:CustomerParty": ["Party"],
    "agg:Party": ["PostalAddress"],
    "agg:TaxTotal": ["TaxSubtotal"],
    "agg:InvoiceLine": ["Item", "Price", "AllowanceCharge"],
}
AMOUNTS = ["TaxableAmount", "TaxAmount", "LineExtensionAmount", "TaxExclusiveAmount", "TaxInclusiveAmount", "PayableAmount",
           "PriceAmount", "Amount"]  # fmt: skip


def invoice(rng: random.Random) -> bytes:
    """One invoice, mostly a good one."""
    currency = rng.choice(["EUR", "EUR", "USD", "XXX"])

    def basic(name: str, value: object, attributes: str = "") -> str:
        return f"<bas:{name}{attributes}>{value}</bas:{name}>\n"

    def amount(name: str, value: float) -> str:
        return basic(name, f"{value:.2f}", f' currencyID="{currency}"')

    def party(role: str) -> str:
        country = rng.choice(["DE", "FR", "NL", "XX"])
        return (
            f"<agg:{role}><agg:Party>\n{basic('EndpointID', rng.randrange(10**12), SCHEME)}"
            f"{basic('Name', f'{role} {rng.randrange(1000)} Ltd')}{basic('CompanyID', f'{country}{rng.randrange(10**9)}')}"
            f"<agg:PostalAddress>{basic('StreetName', f'{rng.randrange(300)} Long Street')}{basic('CityName', 'Springfield')}"
            f"{basic('PostalZone', rng.randrange(10**5))}{basic('CountryCode', country)}</agg:PostalAddress>\n"
            f"</agg:Party></agg:{role}>\n"
        )

    lines, total = [], 0.0
    for number in range(1, rng.randrange(11, 17)):
        quantity, price = rng.randrange(1, 20), rng.randrange(100, 9000) / 100
        total += round(quantity * price, 2)
        lines.append(
            f"<agg:InvoiceLine>{basic('ID', number)}{basic('InvoicedQuantity', quantity, UNIT)}"
            f"{amount('LineExtensionAmount', quantity * price)}<agg:Item>{basic('Name', f'Article {rng.randrange(999)}')}"
            f"{basic('Description', 'A thing of some use, in a box')}{basic('CategoryCode', 'S')}{basic('Percent', 19)}"
            f"</agg:Item><agg:Price>{amount('PriceAmount', price)}</agg:Price></agg:InvoiceLine>\n"
        )
    if rng.random() < 0.1:
        total += 0.01
    tax = round(total * 0.19, 2)
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<inv:Invoice{declared}>\n{basic("ID", rng.randrange(10**8))}'
        f"{basic('IssueDate', f'2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}')}{basic('DueDate', '2026-12-31')}"
        f"{basic('InvoiceTypeCode', rng.choice([380, 380, 381]))}{basic('Note', 'Thank you for your order')}"
        f"{basic('DocumentCurrencyCode', currency)}{basic('BuyerReference', rng.randrange(10**6))}"
        f"{party('SupplierParty')}{party('CustomerParty')}"
        f"<agg:PaymentMeans>{basic('PaymentMeansCode', 58)}{basic('PaymentID', rng.randrange(10**9))}"
        f"{basic('AccountID', f'DE{rng.randrange(10**18)}')}</agg:PaymentMeans>\n"
        f"<agg:TaxTotal>{amount('TaxAmount', tax)}<agg:TaxSubtotal>{amount('TaxableAmount', total)}{amount('TaxAmount', tax)}"
        f"{basic('CategoryCode', 'S')}{basic('Percent', 19)}</agg:TaxSubtotal></agg:TaxTotal>\n"
        f"<agg:MonetaryTotal>{amount('LineExtensionAmount', total)}{amount('TaxExclusiveAmount', total)}"
        f"{amount('TaxInclusiveAmount', total + tax)}{amount('PayableAmount', total + tax)}</agg:MonetaryTotal>\n"
        f"{''.join(lines)}</inv:Invoice>\n"
    ).encode()


class RuleMaker:
    """Tests that hold of a good invoice, each as a subscription that reports the documents in which it does not."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def rules(self, number: int) -> list[str]:
        """So many different rules."""
        found: dict[str, None] = {}
        while len(found) < number:
            context = self.rng.choice(list(BASICS))
            test = self.rng.choice(
                [self.mandatory, self.mandatory, self.code, self.code, self.currency, self.amount, self.total, self.date,
                 self.count, self.conditional, self.conditional, self.length, self.unique, self.part, self.format]
            )(context)  # fmt: skip
            found[f"//{context}[not({test})]"] = None
        return list(found)

    def field(self, context: str) -> str:
        return f"bas:{self.rng.choice(BASICS[context])}"

    def mandatory(self, context: str) -> str:
        field = self.field(context)
        return self.rng.choice(
            [field, f"normalize-space({field}) != ''", f"{field} and not({field} = '')", f"count({field}) = 1",
             f"boolean({field})", f"string-length({field}) > {self.rng.randrange(3)}"]
        )  # fmt: skip

    def part(self, context: str) -> str:
        if context not in PARTS:
            return self.mandatory(context)
        part = f"agg:{self.rng.choice(PARTS[context])}"
        return self.rng.choice(
            [part, f"{part}//bas:{self.rng.choice(['ID', 'Name', 'Percent', 'CountryCode'])}", f"count({part}) >= 1",
             f"{part}/*[normalize-space()]", f"not({part}[not(*)])", f"{part}[last()]/*[1]"]
        )  # fmt: skip

    def code(self, context: str) -> str:
        codes = " ".join(self.rng.sample((CURRENCIES + " " + COUNTRIES + " " + UNITS).split(), 40))
        known = self.rng.choice([CURRENCIES, COUNTRIES, UNITS, CATEGORIES, codes])
        field = self.field(context)
        return (
            f"not({field}) or contains(' {known} {self.rng.randrange(100)} 19 S DE FR NL ', "
            f"concat(' ', normalize-space({field}), ' ')) or string-length({field}) > {self.rng.randrange(1, 6)}"
        )

    def currency(self, context: str) -> str:
        field = self.field(context)
        return self.rng.choice(
            [
                f"not({field}/@currencyID) or {field}/@currencyID = /inv:Invoice/bas:DocumentCurrencyCode",
                f"not({field}/@currencyID != ancestor::inv:Invoice/bas:DocumentCurrencyCode)",
                f"not({field}/@currencyID) or contains(' {CURRENCIES} XXX ', concat(' ', {field}/@currencyID, ' '))",
                f"not({field}[@unitCode]) or contains(' {UNITS} ', concat(' ', {field}/@unitCode, ' '))",
            ]
        )

    def amount(self, context: str) -> str:
        field = f"bas:{self.rng.choice([f for f in BASICS[context] if f in AMOUNTS] or BASICS[context])}"
        return self.rng.choice(
            [
                f"string-length(substring-after({field}, '.')) <= 2",
                f"not({field} < {self.rng.randrange(10)})",
                f"round({field} * 100) div 100 = number({field}) or not(number({field}) = number({field}))",
                f"not({field}) or number({field}) < {self.rng.randrange(10**5, 10**7)} or string-length({field}) > 9",
            ]
        )

    def total(self, context: str) -> str:
        one, other = self.rng.sample(
            ["LineExtensionAmount", "TaxExclusiveAmount", "TaxInclusiveAmount", "PayableAmount"], 2
        )
        limit = self.rng.randrange(1, 10**6)
        return self.rng.choice(
            [
                f"round(sum(/inv:Invoice/agg:InvoiceLine/bas:LineExtensionAmount) * 100) div 100 < {limit} + "
                f"number(//agg:MonetaryTotal/bas:{one})",
                f"round(sum(//agg:TaxSubtotal/bas:TaxAmount) * 100) = round(//agg:TaxTotal/bas:TaxAmount * 100) or {limit} = 1",
                f"../agg:MonetaryTotal/bas:{one} - {limit} <= ../agg:MonetaryTotal/bas:{other} or true()",
                f"count(/inv:Invoice/agg:InvoiceLine) < {limit % 900 + 20}",
            ]
        )

    def date(self, context: str) -> str:
        day = f"20{self.rng.randrange(24, 26)}{self.rng.randrange(1, 13):02}{self.rng.randrange(1, 29):02}"
        return self.rng.choice(
            [
                f"translate(/inv:Invoice/bas:IssueDate, '-', '') > {day}",
                f"translate(ancestor-or-self::inv:Invoice/bas:DueDate, '-', '') >= {day}",
                f"substring(/inv:Invoice/bas:IssueDate, 1, 4) >= {day[:4]} and string-length({self.field(context)}) < {day[:6]}",
            ]
        )

    def count(self, context: str) -> str:
        field = self.field(context)
        return self.rng.choice(
            [f"count({field}) <= {self.rng.randrange(1, 40)}", f"count(*) > {self.rng.randrange(2)}",
             f"count(bas:*[normalize-space() = '']) = 0 or {self.rng.randrange(99)} = 1", f"not({field}[{self.rng.randrange(2, 30)}])"]
        )  # fmt: skip

    def conditional(self, context: str) -> str:
        field, other = self.field(context), self.field(context)
        return self.rng.choice(
            [
                f"not(//bas:InvoiceTypeCode = '{self.rng.randrange(381, 400)}') or {field}",
                f"({field} and {other}) or not({field}) or not({other}) or not(../bas:Note)",
                f"not({field} = 'X{self.rng.randrange(50)}') or {other} = 'Y'",
                f"not(agg:AllowanceCharge/bas:ReasonCode = '{self.rng.randrange(100)}') or {field}",
                f"not(../preceding-sibling::*[1]/bas:ID = '{self.rng.randrange(100, 999)}') or {other}",
            ]
        )

    def length(self, context: str) -> str:
        field = self.field(context)
        return self.rng.choice(
            [f"string-length(normalize-space({field})) <= {self.rng.randrange(40, 300)}",
             f"not({field}) or string-length({field}) >= {self.rng.randrange(1, 3)}"]
        )  # fmt: skip

    def unique(self, context: str) -> str:
        return self.rng.choice(
            [
                f"not(bas:ID = preceding-sibling::{context}/bas:ID) or {self.rng.randrange(99)} = 1",
                f"not(bas:ID = following-sibling::{context}/bas:ID[. = {self.rng.randrange(99)}])",
                f"count(../{context}[bas:ID = '{self.rng.randrange(99)}']) < 2",
            ]
        )

    def format(self, context: str) -> str:
        field = self.field(context)
        return self.rng.choice(
            [
                f"not(starts-with({field}, 'Z{self.rng.randrange(100)}'))",
                f"not(contains({field}, '{self.rng.choice(['<<', '||', '~', 'XX', '??'])}{self.rng.randrange(100)}'))",
                f"translate({field}, '0123456789.-', '') = '' or string-length({field}) > {self.rng.randrange(1, 4)}",
                f"substring({field}, 1, {self.rng.randrange(1, 5)}) = substring({field}, 1, {self.rng.randrange(1, 5)}) or {field}",
            ]
        )
