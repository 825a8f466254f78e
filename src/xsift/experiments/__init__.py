"""The experiments: a paper's figures and claims as data, measured and judged.

definition  the TOML file, read and checked            claims    a claim's check, a small language
plan        its points, resolved                       measures  what can be asked of a measured point
workloads   the documents and subscriptions of a point
worker      a series in a process of its own           subjects  what is measured: engines, and lxml
agreement   who gives the right answer
runner      all of that, point by point                store     raw timings, resumed from
results     medians, spreads, verdicts
report      tables, CSV, Parquet, and the page         page, plot, style, markup
"""
