"""Where a saving of carbon comes from: work moved in time, in space, or in both."""
