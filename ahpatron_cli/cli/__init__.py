"""The three commands: each reads its options, calls the runner and hands records to a renderer."""
