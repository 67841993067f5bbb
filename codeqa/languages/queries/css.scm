; CSS. A rule set is a unit, named by its first selector, when it has some substance: three
; declarations, a custom property or nested rules. Shorter ones stay in the chunks between the
; units, so that a style sheet does not become thousands of two-line units.

(rule_set
  (selectors . (_) @name)
  (block (declaration) . (declaration) . (declaration)) @body) @definition.config
(rule_set (selectors . (_) @name) (block (rule_set)) @body) @definition.config
((rule_set
  (selectors . (_) @name)
  (block (declaration (property_name) @_property)) @body) @definition.config
  (#match? @_property "^--"))

(media_statement . (_) @name (block) @body) @definition.config
(supports_statement . (_) @name (block) @body) @definition.config
(keyframes_statement (keyframes_name) @name (keyframe_block_list) @body) @definition.config
; @font-face {…}, @layer components {…}, @property --angle {…}
(at_rule (at_keyword) @name . (block) @body) @definition.config
(at_rule
  (at_keyword)
  . [(keyword_query) (feature_query) (binary_query) (unary_query) (parenthesized_query)] @name
  (block) @body) @definition.config

; --- references

; animation: pulse 1s; var(--accent)
((declaration
  (property_name) @_property
  (plain_value) @reference.value)
  (#match? @_property "^(-webkit-)?animation"))
((call_expression
  (function_name) @_var
  (arguments . (plain_value) @reference.use))
  (#eq? @_var "var"))

; --- imports

(import_statement (string_value (string_content) @import.module @import.wildcard)) @import
(import_statement (call_expression (arguments [
  (string_value (string_content) @import.module @import.wildcard)
  (plain_value) @import.module @import.wildcard
]))) @import
