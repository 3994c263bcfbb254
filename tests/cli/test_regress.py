"""hplus regress: dropped rows are counted, missing cells are used, what was never seen is said."""

import json

import numpy as np
import pytest


@pytest.fixture
def sales(folder):
    """100 rows of sales.csv: a shop, its code, a price that 30 lack, and a count that 30 lack."""
    rng = np.random.RandomState(0)
    codes = rng.choice([3, 5, 8], 100)
    shops = np.where(codes == 3, "north", np.where(codes == 5, "south", "west"))
    prices = [f"{p:.2f}" for p in rng.uniform(1, 9, 70)] + [""] * 30
    sold = rng.poisson(codes)
    known = [*sold[:35], *[""] * 30, *sold[65:]]
    rows = zip(shops, codes, prices, sold, known, strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    (folder / "sales.csv").write_text("\n".join(["shop,code,price,sold,known", *lines]) + "\n")
    return folder


def test_more_than_a_fifth_of_the_rows_dropped_is_refused_unless_it_is_allowed(sales, run):
    words = ["regress", "sales.csv", "--target", "known", "--features", "shop,code"]
    words += ["-o", "sales.hplus"]
    said = " ".join(run(*words, code=3).stderr.split())
    assert "30 of 100 rows of sales.csv cannot be used (no known: 30), which is more than" in said
    assert "--most-dropped 0.2: fix the file, or pass --most-dropped 1" in said
    assert not (sales / "sales.hplus").exists()
    assert "30 of 100 rows dropped: no known." in run(*words, "--most-dropped", 0.3).stderr


def test_missing_cells_of_features_are_used_and_predicted_from(sales, run):
    words = ["regress", "sales.csv", "--target", "sold", "--features", "shop,price"]
    told = run(*words, "-o", "m.hplus")
    assert "dropped" not in told.stderr
    assert "100, each predicted once by 5-fold cross-validation" in " ".join(told.stdout.split())
    (sales / "next.csv").write_text("shop,price\nwest,\nnorth,4\n,4\n")
    answers = run("predict", "m.hplus", "next.csv")
    assert "1 of 3 rows have a shop unlike any in the fit, for example None:" in " ".join(
        answers.stderr.split()
    )
    lines = answers.stdout.splitlines()
    assert lines[1].startswith("west,,")
    west, north = (float(line.split(",")[2]) for line in lines[1:3])
    assert west > 1.5 * north


def test_categories_and_codes_that_were_never_seen_are_said(sales, run):
    run("regress", "sales.csv", "--target", "sold", "--features", "shop,code", "-o", "m.hplus")
    (sales / "next.csv").write_text("shop,code\nnorth,3\nsouth,99\neast,5\neast,8\n")
    said = " ".join(run("predict", "m.hplus", "next.csv").stderr.split())
    assert "2 of 4 rows have a shop unlike any in the fit, for example 'east':" in said
    assert "1 of 4 rows have a code unlike any in the fit, for example 99.0:" in said
    (sales / "next.csv").write_text("shop,code\nnorth,3\nwest,6\n")
    assert run("predict", "m.hplus", "next.csv").stderr == ""


BAD_COLUMNS = {
    "features with the target": ("--target sold --features shop,sold", "--features must not be"),
    "the target as exposure": (
        "--target sold --exposure sold",
        "--exposure must not be the target",
    ),
    "the exposure as feature": (
        "--target sold --features shop,price --exposure price",
        "--features must not include the exposure, got 'price'",
    ),
    "a target of text": ("--target shop", "--target must be a column of numbers, got "),
    "a level in percent": ("--target sold --features shop --level 90", "90 % is 0.9"),
    "text without quotes": ("--target sold --where shop==nord", "--where compares a column"),
    "no value of an option": (
        "--features --target sold",
        "--features needs A,B,... before --target",
    ),
}


@pytest.mark.parametrize(("words", "said"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_columns_that_cannot_be_meant_are_refused_in_one_sentence(sales, run, words, said):
    code = 3 if "where" in words else 2
    found = run("regress", "sales.csv", *words.split(), code=code)
    assert said in " ".join(found.stderr.split())


def test_a_file_of_very_many_rows_is_learned_from_in_chunks(sales, run, monkeypatch):
    words = ["regress", "sales.csv", "--target", "known", "--features", "shop,code,price"]
    words += ["--most-dropped", 0.5, "--where", "code < 8", "--json"]
    whole = json.loads(run(*words).stdout)
    monkeypatch.setattr("hplus.cli.regress.MAX_ROWS_HELD", 20)
    assert json.loads(run(*words).stdout)["coverage"] == whole["coverage"]
    monkeypatch.setattr("hplus.studies.quantity_chunks.MAX_SAMPLED_ROWS", 30)
    found = json.loads(run(*words).stdout)
    assert [found[name] for name in ("rows", "dropped", "left_out")] == [
        whole[name] for name in ("rows", "dropped", "left_out")
    ]
    assert found["held_out"] == 30 < whole["held_out"]
