"""From a results folder to tables, figures and a report; reads `testbed.model` and `.store`."""
