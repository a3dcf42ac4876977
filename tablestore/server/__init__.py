"""One process for a team: the catalog service, who may do what, and pages to look at."""
