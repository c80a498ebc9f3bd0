"""What the subcommands do. Each module adds its parser and runs its command."""
