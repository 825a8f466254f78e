"""The style sheet of the report: colours as variables, one set for light pages and one for dark ones."""

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f6f4; --card: #ffffff; --code: #f1f1ee;
  --ink: #1d1f23; --soft: #5c626b; --rule: #dfe0dc; --grid: #ebebe8;
  --good: #1c7a44; --good-back: #e3f3e8; --bad: #b3261e; --bad-back: #fbe6e4; --none: #6b6f76; --none-back: #ececea;
  --c0: #1f6fb8; --c1: #d9611a; --c2: #1d8f62; --c3: #b5378a; --c4: #7357c7; --c5: #9a7400;
  --c6: #0b8ea3; --c7: #c93a3a; --c8: #5d7f12; --c9: #6a7079; --c10: #91522c; --c11: #4354cf;
  --c12: #9c1452; --c13: #2b5f52; --c14: #b08a55; --c15: #8a2be2;
  --open: #7a5500; --open-back: #fbf0d4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131417; --card: #1c1e22; --code: #26292e;
    --ink: #e7e8ea; --soft: #a2a8b1; --rule: #34373d; --grid: #292c31;
    --good: #74d69b; --good-back: #173324; --bad: #ff9a92; --bad-back: #43201e; --none: #a9aeb6; --none-back: #2b2e33;
    --c0: #62aef2; --c1: #ff9757; --c2: #55cf9d; --c3: #f07cc6; --c4: #ab93ff; --c5: #dcb63f;
    --c6: #4fd0e2; --c7: #ff7f7f; --c8: #a9cd56; --c9: #a5abb5; --c10: #d99a70; --c11: #8f9cff;
    --c12: #ff6fa5; --c13: #86b8a9; --c14: #e3c491; --c15: #cf9bff;
    --open: #f2cd73; --open-back: #3b3015;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 36px 24px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 0; line-height: 1.3; }
h3 { font-size: 14px; margin: 0 0 6px; font-weight: 600; }
p { margin: 0 0 10px; }
a { color: inherit; }
code, pre { font: 12.5px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--code); }
code { padding: 1px 5px; border-radius: 4px; overflow-wrap: anywhere; }
pre { padding: 14px 16px; border-radius: 8px; overflow: auto; max-height: 480px; margin: 10px 0 0; }
.paper, .place, .soft { color: var(--soft); }
.place { font-size: 13.5px; }
header .about { columns: 2 480px; column-gap: 40px; margin-top: 14px; }
.facts { display: flex; flex-wrap: wrap; gap: 6px 26px; margin: 16px 0 0; padding: 0; font-size: 13.5px; }
.facts div { display: flex; gap: 7px; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 22px 24px; margin-top: 24px; }
.overview td:last-child { color: var(--soft); white-space: nowrap; text-align: right; padding-right: 0; }
.overview table { border-collapse: collapse; width: 100%; }
.evidence table, .numbers table { border-collapse: collapse; height: max-content; }
.overview td, .overview th { padding: 7px 14px 7px 0; border-top: 1px solid var(--rule); vertical-align: top; }
.overview th { text-align: left; font-weight: 400; font-size: 12.5px; color: var(--soft); white-space: nowrap; }
.overview th:last-child { text-align: right; padding-right: 0; }
.overview tr:first-child td, .overview thead th { border-top: 0; }
.overview thead + tbody tr:first-child td { border-top: 1px solid var(--rule); }
.overview h2 { margin-bottom: 8px; }
.badge { display: inline-block; font-size: 12.5px; font-weight: 600; padding: 1px 9px; border-radius: 99px;
  white-space: nowrap; }
.holds { color: var(--good); background: var(--good-back); }
.does-not-hold { color: var(--bad); background: var(--bad-back); }
.open { color: var(--open); background: var(--open-back); }
.not-measured { color: var(--none); background: var(--none-back); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 540px), 1fr)); gap: 4px 28px; }
.claims { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); gap: 0 32px;
  margin-top: 12px; }
@media (min-width: 981px) {
  .beside { display: grid; grid-template-columns: minmax(0, 1.7fr) minmax(0, 1fr); gap: 0 32px; }
  .beside > * { grid-column: 1; }
  .beside > .claims { grid-column: 2; grid-row: 1 / span 20; align-content: start; }
}
.claim { padding: 14px 0; border-top: 1px solid var(--rule); min-width: 0; }
.claim p { margin: 6px 0; }
.claim .sure { font-size: 12.5px; color: var(--soft); margin-left: 8px; }
.claim .check { display: block; margin-top: 6px; }
.claim .why { border-left: 3px solid var(--rule); padding-left: 10px; font-size: 14px; }
.evidence { overflow-x: auto; margin-top: 8px; font-size: 13px; }
.evidence th, .evidence td, .numbers th, .numbers td { text-align: right; padding: 3px 0 3px 12px; font-weight: 400;
  font-variant-numeric: tabular-nums; white-space: nowrap; border-top: 1px solid var(--rule); }
.evidence th:first-child, .numbers th:first-child { text-align: left; padding-left: 0; }
.evidence thead th, .numbers thead th { color: var(--soft); border-top: 0; }
.evidence thead th, .numbers thead th { white-space: normal; vertical-align: bottom; }
.evidence th:first-child, .numbers th:first-child { position: sticky; left: 0; background: var(--card); }
.evidence thead code { background: none; padding: 0; overflow-wrap: break-word; }
.evidence tbody code { white-space: normal; }
.evidence .ratio { font-weight: 600; }
.numbers { overflow-x: auto; margin-top: 10px; font-size: 13px; display: flex; flex-wrap: wrap; gap: 10px 44px; }
.numbers .spread { color: var(--soft); }
.numbers caption { text-align: left; padding-top: 10px; font-weight: 600; }
.failure, .left-out { border-radius: 8px; padding: 9px 14px; margin: 8px 0; font-size: 14px;
  background: var(--bad-back); }
.left-out { background: var(--none-back); }
.note { max-width: 78ch; margin-top: 8px; font-size: 14.5px; }
.plot-title { margin: 10px 0 2px; font-size: 13.5px; color: var(--soft); }
details { margin-top: 10px; font-size: 14px; }
summary { cursor: pointer; color: var(--soft); padding: 3px 0; }
summary:hover { color: var(--ink); }
svg.plot { width: 100%; max-width: 760px; height: auto; display: block; overflow: visible; }
svg.narrow, .legend, .phone { display: none; }
.legend { list-style: none; margin: 4px 0 0; padding: 0; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; }
.legend li { color: var(--name); font-weight: 600; display: flex; align-items: center; gap: 5px; }
svg text { font: 12.5px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--soft);
  font-variant-numeric: tabular-nums; }
svg .name { font-size: 13px; }
.series { --name: var(--c); }
@supports (color: color-mix(in srgb, red, blue)) {
  .series { --name: color-mix(in srgb, var(--c) 70%, var(--ink)); }
}
svg .label { fill: var(--name); font-weight: 600; font-size: 13px;
  paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
svg .grid { stroke: var(--grid); }
svg .axis { stroke: var(--soft); stroke-opacity: 0.6; }
svg .line { fill: none; stroke: var(--c); stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }
svg .band { fill: var(--c); opacity: 0.2; stroke: var(--c); stroke-opacity: 0.5; stroke-width: 0.7; }
svg .whisker { stroke: var(--c); stroke-width: 1.2; opacity: 0.55; }
svg .bar + .whisker { stroke: var(--ink); opacity: 0.7; }
svg .dot { fill: var(--c); stroke: var(--card); stroke-width: 1.2; }
svg .dot.hollow { fill: var(--card); stroke: var(--c); stroke-width: 2; }
svg .bar { fill: var(--c); }
svg .tie { fill: none; stroke: var(--c); opacity: 0.4; }
svg .target { fill: transparent; }
svg .series { transition: opacity 0.12s; }
svg.focused .series:not(.focus) { opacity: 0.13; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.c4 { --c: var(--c4); } .c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.c8 { --c: var(--c8); } .c9 { --c: var(--c9); } .c10 { --c: var(--c10); } .c11 { --c: var(--c11); }
.c12 { --c: var(--c12); } .c13 { --c: var(--c13); } .c14 { --c: var(--c14); } .c15 { --c: var(--c15); }
footer { margin-top: 28px; font-size: 13.5px; color: var(--soft); }
@media (max-width: 620px) {
  main { padding: 20px 12px 40px; }
  .card { padding: 16px 14px; border-radius: 10px; }
  h1 { font-size: 25px; }
  svg.wide { display: none; }
  svg.narrow { display: block; max-width: 560px; }
  .legend { display: flex; }
  .phone { display: block; }
  .overview thead { position: absolute; left: -9999px; }
  .overview tr { display: flex; flex-wrap: wrap; gap: 4px 8px; padding: 10px 0; border-top: 1px solid var(--rule); }
  .overview tr:first-child { border-top: 0; }
  .overview td, .overview thead + tbody tr:first-child td { border: 0; padding: 0; }
  .overview td:nth-last-child(2) { flex-basis: 100%; order: 2; }
  .overview td:last-child { margin-left: auto; }
  .overview td:empty { display: none; }
  .overview a { display: inline-block; padding: 5px 0 5px 14px; margin: -5px 0; }
  summary { padding: 8px 0; }
}
@media print { body { background: none; } .card { break-inside: avoid; border: 0; padding: 0; } }
"""
