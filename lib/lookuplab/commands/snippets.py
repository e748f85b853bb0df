"""`lookuplab data build snippets`: the mini corpus of descriptions and code."""

from pathlib import Path

import click


@click.command("snippets", short_help="The mini corpus of snippets.", epilog="""\b
Examples:
  lookuplab data build snippets
  lookuplab data build snippets -o somewhere""")
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False),
              help="Folder to write to.  [default: data/mini/stackoverflow]")
def command(out: Path | None) -> None:
    """Build descriptions, code and queries from the docstrings of numpy, pandas, scipy and scikit-learn."""
    from lookuplab.mini import snippets

    made = snippets.build()
    snippets.save(made, out or snippets.MINI)
    click.echo(f"{len(made.snippets):,} snippets, {len(made.held_out):,} held out, "
               f"{' and '.join(f'{len(found)} {split}' for split, found in made.queries.items())} queries "
               f"-> {out or snippets.MINI}")
