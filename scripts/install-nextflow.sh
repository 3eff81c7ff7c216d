#!/usr/bin/env bash
# Installs the jars of a version of Nextflow from Maven Central into bin/nextflow-VERSION.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1
place=$PWD/bin/nextflow-$version
[[ -d $place ]] && exit 0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fairway</groupId><artifactId>nextflow</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.nextflow</groupId><artifactId>nextflow</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
EOF
mvn --quiet --batch-mode --file "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/jars"
mkdir -p bin
mv "$folder/jars" "$place"
