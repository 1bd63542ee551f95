"""Interactive pages about attention: static, in English and Chinese, with a model that runs in the browser.

`stops/` has two files for each page, which is called a stop: NAME.js draws it, NAME.json has its texts.
NAME.css, where there is one, has styles of that page alone. What some stops share is in `page/parts/`.
"""
