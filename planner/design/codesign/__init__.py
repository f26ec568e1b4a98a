"""Co-design: variants of one architecture x precisions x chips, evaluated together in arrays (`flopwatt codesign`)."""
