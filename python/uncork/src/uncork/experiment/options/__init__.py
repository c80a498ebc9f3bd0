"""The options of the commands. They import no engine, so that help and errors come at once."""
