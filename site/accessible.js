// What the theme leaves out for people who use a keyboard or a screen reader.

// Code and tables that are wider than the page scroll with the keyboard.
for (const wide of document.querySelectorAll("pre code, .table-wrapper")) wide.tabIndex = 0;

// The label that opens the table of contents acts as a button.
document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");

// The box that enlarges a picture would be read as the picture's text, twice.
for (const box of document.querySelectorAll(".checkbox-img")) box.ariaLabel = "Enlarge the picture";
