"""Embed or tag a table of text with Spark.

    pip install '.[spark]'                   # and Java: Debian's openjdk-17-jre-headless
    python examples/embed_with_spark.py --input texts --keys id --output vectors
    spark-submit --master spark://host:7077 examples/embed_with_spark.py ...

The columns are the keys (of text: `row`) and those of `elmo_embed` or `elmo_tag`. A model in a
folder must be on every machine; or Spark sends a .zip of its files: --archive my-elmo.zip#my-elmo
--model_name_or_path my-elmo.
"""

import argparse
import sys

try:
    from pyspark.sql import DataFrame, SparkSession, functions
except ModuleNotFoundError:
    sys.exit("This example requires Spark: pip install '.[spark]'")

from elmo_hf.engines import elmo_embed, elmo_tag, reason_of, require_java


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True, help="a path or an address that Spark reads")
    parser.add_argument("--output", required=True, help="a folder for Parquet, not there yet")
    parser.add_argument("--format", choices=["parquet", "json", "text"], default="parquet")
    parser.add_argument("--column", default="text", help="the column with text or lists of words")
    parser.add_argument("--keys", nargs="*", default=[], help="the columns that tell rows apart")
    parser.add_argument("--model_name_or_path", default="bundled", help="a folder or Hub name")
    parser.add_argument("--archive", help="a .zip with the model's files, to be sent to workers")
    parser.add_argument("--tag", action="store_true", help="tag instead of embedding")
    parser.add_argument("--layers", default="all", help="all, mix, top, mean, or a number")
    parser.add_argument("--pooling", default="none", help="none, mean or max")
    parser.add_argument("--split", help="a splitter; by default the one saved with the model")
    parser.add_argument("--on_error", choices=["stop", "skip"], default="stop")
    args = parser.parse_args()
    if args.format != "text" and not args.keys:
        parser.error(f"--keys must name the columns that tell the rows of {args.format} apart")
    return args


def main() -> None:
    args = parse_arguments()
    try:
        require_java()
    except OSError as error:
        sys.exit(str(error))

    spark = SparkSession.builder.appName("elmo").getOrCreate()
    if args.archive:
        spark.sparkContext.addArchive(args.archive)
    settings = {
        "keys": ["row"] if args.format == "text" else args.keys,
        "column": "value" if args.format == "text" else args.column,
        "model": args.model_name_or_path,
        "split": args.split,
        "on_error": args.on_error,
    }
    rows = read(spark, args.input, args.format)
    if args.tag:
        result = elmo_tag(rows, **settings)
    else:
        result = elmo_embed(rows, layers=args.layers, pooling=args.pooling, **settings)
    try:
        result.write.parquet(args.output)
    except Exception as error:
        if reason := reason_of(error):
            sys.exit(reason)
        raise


def read(spark: SparkSession, path: str, kind: str) -> DataFrame:
    if kind == "text":
        # numbers that grow from line to line, with gaps between the parts that workers read
        return spark.read.text(path).withColumn("row", functions.monotonically_increasing_id())
    return spark.read.load(path, format=kind)


if __name__ == "__main__":
    main()
